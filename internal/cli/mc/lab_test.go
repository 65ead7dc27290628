package mc

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	manifests "github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
)

// One API server plays all clusters: each test has Namespaces of its own.
var clusters = labtest.Shared(labtest.Options{Clusters: []string{"hub"}})

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // libraries log through one logger of the process
	os.Exit(clusters.Main(m))
}

// cluster returns a client of the lab's cluster, with the CRDs in it.
func cluster(t *testing.T) (client.WithWatch, *lab.Cluster) {
	t.Helper()
	hub := labtest.Cluster(t, clusters.Lab(t), "hub")
	config := hub.RESTConfig()
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []manifests.Role{manifests.Leader, manifests.Member} {
		crds, err := manifests.CRDs(role)
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range crds {
			if err := c.Create(t.Context(), crd); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
			awaitEstablished(t, c, crd.GetName())
		}
	}
	return c, hub
}

func awaitEstablished(t *testing.T, c client.Client, name string) {
	t.Helper()
	eventually(t, c, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}},
		func(crd *apiextensionsv1.CustomResourceDefinition) bool {
			for _, condition := range crd.Status.Conditions {
				if condition.Type == apiextensionsv1.Established {
					return condition.Status == apiextensionsv1.ConditionTrue
				}
			}
			return false
		})
}

// eventually reads an object until it is as it should be.
func eventually[T client.Object](t *testing.T, c client.Client, object T, holds func(T) bool) {
	t.Helper()
	err := until(t.Context(), testTime, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
		return err == nil && holds(object), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatalf("%T %q did not become as wanted: %v", object, object.GetName(), err)
	}
}

const testTime = time.Minute

// namespace makes a Namespace whose name begins with the test's purpose.
func namespace(t *testing.T, c client.Client, prefix string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}
