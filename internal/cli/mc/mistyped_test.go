package mc

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// sparse is a cluster that has these Namespaces and ClusterSets, and nothing else.
func sparse(namespaces, sets []string) client.WithWatch {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			if _, ok := object.(*corev1.Namespace); ok {
				for _, name := range namespaces {
					if name == key.Name {
						return nil
					}
				}
			}
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if list, ok := list.(*v1alpha2.ClusterSetList); ok {
				for _, name := range sets {
					var set v1alpha2.ClusterSet
					set.Name = name
					list.Items = append(list.Items, set)
				}
			}
			return nil
		},
	})
}

func TestLeaveOfAnotherClusterSetThanTheOneThereIs(t *testing.T) {
	opts := LeaveOptions{Namespace: "member", ClusterSet: "fleeet"}
	_, err := Leave(t.Context(), sparse([]string{"member"}, []string{"fleet"}), opts)
	wantError(t, err, exit.Refused, `cannot leave ClusterSet "fleeet"`, `has ClusterSet "fleet"`, "--clusterset fleet")

	result, err := Leave(t.Context(), sparse([]string{"member"}, nil), opts)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{"clusterset/fleeet not found"}, lines(result.Touched))
}

func TestExportFromANamespaceThatIsMissing(t *testing.T) {
	opts := ExportOptions{Namespace: "shopp", Name: "cart"}
	_, err := Export(t.Context(), sparse([]string{"shop"}, nil), opts)
	wantError(t, err, exit.Refused, `"shopp/cart"`, `no Namespace "shopp"`, "-n", "MEM-SE-2")
	opts.Namespace = "shop"
	_, err = Export(t.Context(), sparse([]string{"shop"}, nil), opts)
	wantError(t, err, exit.Refused, `"shop/cart"`, "does not exist", "MEM-SE-2")
}
