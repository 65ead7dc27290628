package mc

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/bundle"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// fileObjects are those of the file, moved to the wanted Namespace and marked
// as ours, so that they can be replaced and removed again.
func (o DeployOptions) fileObjects() ([]*unstructured.Unstructured, string, error) {
	objects, err := readBundle(o.Manifest, o.Role, o.Namespace)
	if err != nil {
		return nil, "", &exit.Error{Code: exit.Usage, Cause: fmt.Errorf("cannot use the manifest file: %w", err)}
	}
	sum := sha256.Sum256(o.Manifest)
	return objects, "sha256:" + hex.EncodeToString(sum[:]), nil
}

func readBundle(text []byte, role config.Role, namespace string) ([]*unstructured.Unstructured, error) {
	objects, err := bundle.Parse(text)
	if err != nil {
		return nil, err
	}
	bundle.Move(objects, cmp.Or(bundle.Namespace(objects), usualNamespace(role)), namespace)
	bundle.Own(objects)
	bundle.Sort(objects)
	return objects, nil
}

// placeObjects puts what the file leaves in no Namespace into the one that was
// asked for, and refuses, before anything is written, what has no place: a kind
// that nobody knows, or a Namespace that neither the file nor the cluster has.
func (o DeployOptions) placeObjects(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	if o.Manifest == nil {
		return nil // every object of our own says where it is
	}
	namespaced := func(obj *unstructured.Unstructured) (bool, error) { return c.IsObjectNamespaced(obj) }
	if err := bundle.Place(objects, o.Namespace, namespaced); err != nil {
		return failed(o.what(), "put the CRDs of its kinds into the manifest file, or install them first", err)
	}
	var missing []string
	for _, name := range bundle.Elsewhere(objects) {
		if name == o.Namespace {
			continue // made or missed later
		}
		present, err := find[corev1.Namespace](ctx, c, client.ObjectKey{Name: name})
		if err != nil && !apierrors.IsForbidden(err) {
			return explain(o.what(), err)
		}
		if err == nil && present == nil {
			missing = append(missing, fmt.Sprintf("%q", name))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &refusal.Refusal{What: o.what(), Rule: "WK-17",
		Why:  fmt.Sprintf("the manifest file has objects in Namespace %s, which is neither in the file nor in this cluster", strings.Join(missing, " and ")),
		Next: "add the Namespace to the file, or make it first: kubectl create namespace NAME",
	}
}

func usualNamespace(role config.Role) string {
	if role == config.Leader {
		return v1alpha1.DefaultLeaderNamespace
	}
	return v1alpha1.DefaultMemberNamespace
}

func lower(kind string) string { return strings.ToLower(kind) }
