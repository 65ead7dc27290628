package evidence

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// pageSize keeps one answer of an API server well below its limits.
const pageSize = 500

// list reads all objects of a kind, page by page. Where a page can no longer be
// had at the state of the first, which takes minutes, everything is read anew at
// once: objects of two states would be neither.
func list[T any, P apply.Object[T]](ctx context.Context, r client.Reader, empty client.ObjectList, options ...client.ListOption) ([]T, error) {
	var all []T
	limit, next := int64(pageSize), ""
	for {
		page := empty.DeepCopyObject().(client.ObjectList)
		err := r.List(ctx, page, append(slices.Clone(options), client.Limit(limit), client.Continue(next))...)
		if apierrors.IsResourceExpired(err) && next != "" {
			all, limit, next = nil, 0, ""
			continue
		}
		if apierrors.IsNotFound(err) { // a list is only not found where its kind was a moment ago
			err = &meta.NoKindMatchError{GroupKind: page.GetObjectKind().GroupVersionKind().GroupKind()}
		}
		if err != nil {
			return nil, err
		}
		if err := apply.Each(page, func(object client.Object) error {
			item, ok := object.(P)
			if !ok {
				return fmt.Errorf("a list holds a %T", object)
			}
			all = append(all, *item)
			return nil
		}); err != nil {
			return nil, err
		}
		if next = page.GetContinue(); next == "" {
			return all, nil
		}
	}
}

// listAny reads a kind of which this program need not know the type.
func listAny(ctx context.Context, r client.Reader, kind schema.GroupVersionKind, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	empty := &unstructured.UnstructuredList{}
	empty.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list[unstructured.Unstructured](ctx, r, empty, options...)
}

// names reads the metadata of a kind and nothing else, so that no content of a
// Secret travels.
func names(ctx context.Context, r client.Reader, kind schema.GroupVersionKind, options ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	empty := &metav1.PartialObjectMetadataList{}
	empty.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list[metav1.PartialObjectMetadata](ctx, r, empty, options...)
}

// orNone: a kind that a cluster does not have is a kind without objects.
func orNone[T any](all []T, err error) ([]T, error) {
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	return all, err
}

// versions reads a kind in the first of its versions that the cluster serves.
func versions[T any](ctx context.Context, r client.Reader, group schema.GroupKind, served []string, options ...client.ListOption) ([]T, error) {
	for _, version := range served {
		found, err := listAny(ctx, r, group.WithVersion(version), options...)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all := make([]T, len(found))
		for i := range found {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found[i].Object, &all[i]); err != nil {
				return nil, fmt.Errorf("%s %s cannot be understood: %w", group.Kind, found[i].GetName(), err)
			}
		}
		return all, nil
	}
	return nil, &meta.NoKindMatchError{GroupKind: group, SearchedVersions: served}
}

var kindClusterSet = schema.GroupKind{Group: v1alpha2.GroupVersion.Group, Kind: "ClusterSet"}

// clusterSets reads those of a Namespace, or of all (""). Before v1.13 there was
// no v1alpha2, whose fields are otherwise those of v1alpha1.
func clusterSets(ctx context.Context, r client.Reader, namespace string) ([]v1alpha2.ClusterSet, error) {
	sets, err := versions[v1alpha2.ClusterSet](ctx, r, kindClusterSet, []string{"v1alpha2", "v1alpha1"}, client.InNamespace(namespace))
	if !meta.IsNoMatchError(err) {
		return sets, err
	}
	crd, err := clusterSetCRD(ctx, r)
	if apierrors.IsNotFound(err) {
		return nil, nil // nobody ever installed it
	}
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("the cluster serves ClusterSet as %s, and this program knows v1alpha2; use a release of Lockstep that knows these CRDs",
		strings.Join(servedVersions(crd), ", "))
}

func clusterSetCRD(ctx context.Context, r client.Reader) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, r.Get(ctx, types.NamespacedName{Name: "clustersets." + kindClusterSet.Group}, crd)
}

func servedVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var served []string
	for _, v := range crd.Spec.Versions {
		if v.Served {
			served = append(served, v.Name)
		}
	}
	return served
}

// clusterClaims reads those of a Namespace, or of all (""); served is false where
// the kind is gone.
func clusterClaims(ctx context.Context, r client.Reader, namespace string) (claims []v1alpha2.ClusterClaim, served bool, err error) {
	claims, err = list[v1alpha2.ClusterClaim](ctx, r, &v1alpha2.ClusterClaimList{}, client.InNamespace(namespace))
	if meta.IsNoMatchError(err) {
		return nil, false, nil
	}
	return claims, err == nil, err
}
