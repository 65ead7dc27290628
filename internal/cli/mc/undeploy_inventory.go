package mc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kindLister tells which kinds an API server has; discovery clients do.
type kindLister interface {
	ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error)
}

// kindsTime is how long kinds whose CRDs have just been deleted may leave
// discovery incomplete.
const kindsTime = 10 * time.Second

// contents are all objects of a Namespace, of every kind that can be listed.
type contents struct {
	kinds   map[schema.GroupKind]bool // that were listed
	objects []content
}

type content struct {
	schema.GroupKind
	metav1.ObjectMeta
}

// takeInventory lists everything in a Namespace. It fails when any kind cannot be
// read: deleting the Namespace would delete what nobody saw.
func takeInventory(ctx context.Context, c client.Client, kinds kindLister, namespace string) (contents, error) {
	all := contents{kinds: map[schema.GroupKind]bool{}}
	resources, err := listKinds(ctx, kinds)
	if err != nil {
		return all, err
	}
	for _, group := range resources {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return all, err
		}
		for _, resource := range group.APIResources {
			if !slices.Contains(resource.Verbs, "list") {
				continue
			}
			if err := all.add(ctx, c, version.WithKind(resource.Kind), namespace); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

func listKinds(ctx context.Context, kinds kindLister) ([]*metav1.APIResourceList, error) {
	if kinds == nil {
		return nil, errors.New("the kinds of the cluster are not known")
	}
	var resources []*metav1.APIResourceList
	var failure error
	err := until(ctx, kindsTime, func(context.Context) (bool, error) {
		resources, failure = kinds.ServerPreferredNamespacedResources()
		return failure == nil, nil
	})
	if errors.Is(err, errNotYet) {
		return nil, failure
	}
	return resources, err
}

func (a *contents) add(ctx context.Context, c client.Client, kind schema.GroupVersionKind, namespace string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := c.List(ctx, list, client.InNamespace(namespace))
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil // the kind has gone, and all objects with it
	case err != nil:
		return fmt.Errorf("cannot list kind %s: %w", kind.Kind, err)
	}
	a.kinds[kind.GroupKind()] = true
	for _, item := range list.Items {
		a.objects = append(a.objects, content{kind.GroupKind(), item.ObjectMeta})
	}
	return nil
}

// resident names one object that somebody keeps there; "" when there is none.
func (a contents) resident() string {
	present := map[types.UID]content{}
	for _, o := range a.objects {
		present[o.UID] = o
	}
	for _, o := range a.objects {
		if !o.everywhere() && !a.remnant(o, present, 0) {
			return fmt.Sprintf("%s %q", o.Kind, o.Name)
		}
	}
	return ""
}

// everywhere tells whether Kubernetes puts such an object into every Namespace,
// or beside others: an Event is a report, and Endpoints are nothing without their
// Service, which is seen itself.
func (o content) everywhere() bool {
	switch o.GroupKind {
	case schema.GroupKind{Kind: "ConfigMap"}:
		return o.Name == "kube-root-ca.crt"
	case schema.GroupKind{Kind: "ServiceAccount"}:
		return o.Name == "default"
	case schema.GroupKind{Kind: "Event"}, schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}, schema.GroupKind{Kind: "Endpoints"}:
		return true
	default:
		return false
	}
}

// remnant tells whether the garbage collector is about to delete an object: each
// of its owners was looked for and has gone, as our Deployment has, or is a
// remnant itself. An owner of a kind that was not listed may well be there.
func (a contents) remnant(o content, present map[types.UID]content, depth int) bool {
	const deepest = 10 // owners may own each other in a ring
	if len(o.OwnerReferences) == 0 || depth == deepest {
		return false
	}
	for _, ref := range o.OwnerReferences {
		owner, there := present[ref.UID]
		looked := a.kinds[schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()]
		if !looked || there && !a.remnant(owner, present, depth+1) {
			return false
		}
	}
	return true
}
