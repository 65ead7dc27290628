package mc

import (
	"context"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
)

// A kind that is not served yet has objects all the same: who forgets v1alpha1 then
// makes them unreadable.
func TestMigrateLegacyForgetsNothingThatItCouldNotRead(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: clusterSetCRD}}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true}, {Name: "v1alpha2", Storage: true}}
	crd.Status.StoredVersions = []string{"v1alpha1", "v1alpha2"}
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(crd).WithStatusSubresource(crd).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*v1alpha2.ClusterSetList); ok {
				return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: v1alpha2.GroupVersion.Group, Kind: "ClusterSet"}}
			}
			return w.List(ctx, list, options...)
		},
	}).Build()
	_, err := MigrateLegacy(t.Context(), c, MigrateLegacyOptions{})
	wantError(t, err, exit.Failed, "not served as v1alpha2", "repeat the command")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Fatal(err)
	}
	same(t, []string{"v1alpha1", "v1alpha2"}, crd.Status.StoredVersions)
}
