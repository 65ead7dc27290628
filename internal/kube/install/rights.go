package install

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// right is one thing an installer does to one kind in one Namespace.
type right struct {
	verb      string
	kind      schema.GroupVersionKind
	namespace string // empty for cluster-scoped kinds
}

// rightsToApply lists, each once and in order, what Apply does. Kinds that are
// waited for are watched as well.
func rightsToApply(objects []*unstructured.Unstructured) []right {
	return rights(objects, func(obj *unstructured.Unstructured) []string {
		// An apply that creates needs create besides patch.
		verbs := []string{"get", "create", "patch"}
		if isKind(obj, crdKind) || isKind(obj, deploymentKind) {
			verbs = append(verbs, "list", "watch")
		}
		return verbs
	})
}

// rightsToRemove lists what Remove does.
func rightsToRemove(objects []*unstructured.Unstructured) []right {
	return rights(objects, func(*unstructured.Unstructured) []string { return []string{"get", "delete"} })
}

func rights(objects []*unstructured.Unstructured, verbs func(*unstructured.Unstructured) []string) []right {
	var list []right
	seen := map[right]bool{}
	for _, obj := range objects {
		for _, verb := range verbs(obj) {
			r := right{verb, obj.GroupVersionKind(), obj.GetNamespace()}
			if !seen[r] {
				seen[r] = true
				list = append(list, r)
			}
		}
	}
	return list
}

// requireRights refuses when the user of this client lacks any of the rights,
// and names all of them. An administrator costs one question, anybody else one
// for each right.
func requireRights(ctx context.Context, c client.Client, wanted []right) error {
	everything, err := may(ctx, c, authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"})
	if err != nil || everything {
		return err
	}
	var missing []string
	for _, r := range wanted {
		resource, err := resourceOf(c.RESTMapper(), r.kind)
		if err != nil {
			return err
		}
		allowed, err := may(ctx, c, authorizationv1.ResourceAttributes{
			Verb: r.verb, Group: resource.Group, Resource: resource.Resource, Namespace: r.namespace,
		})
		if err != nil {
			return err
		}
		if !allowed {
			missing = append(missing, r.describe(resource))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &refusal.Refusal{
		What: "cannot change what is installed in this cluster",
		Why:  "these credentials may not " + strings.Join(missing, ", "),
		Next: "use credentials of a cluster administrator, or have these rights granted",
	}
}

func (r right) describe(resource schema.GroupResource) string {
	if r.namespace == "" {
		return r.verb + " " + resource.String()
	}
	return fmt.Sprintf("%s %s in namespace %q", r.verb, resource, r.namespace)
}

func may(ctx context.Context, c client.Client, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
	}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("cannot ask the API server what these credentials may do: %w", err)
	}
	return review.Status.Allowed, nil
}

func resourceOf(mapper meta.RESTMapper, kind schema.GroupVersionKind) (schema.GroupResource, error) {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupResource{}, fmt.Errorf("the API server does not serve %s: %w", kind, err)
	}
	return mapping.Resource.GroupResource(), nil
}
