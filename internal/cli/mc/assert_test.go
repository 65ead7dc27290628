package mc

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// wantError checks the code and that the sentence names what it has to name.
func wantError(t *testing.T, err error, code int, words ...string) {
	t.Helper()
	if got := exit.Code(err); err == nil || got != code {
		t.Fatalf("error %v has code %d, want %d", err, got, code)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error does not say %q: %v", word, err)
		}
	}
}

func same[T any](t *testing.T, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differs from what is wanted (-), got (+):\n%s", diff)
	}
}

func get(t *testing.T, c client.Client, namespace, name string, object client.Object) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		t.Fatal(err)
	}
}

// takeUp writes a status as a controller does.
func takeUp(t *testing.T, c client.Client, namespace, name string, status v1alpha1.ClusterSetStatus) {
	t.Helper()
	var set v1alpha2.ClusterSet
	get(t, c, namespace, name, &set)
	set.Status = status
	set.Status.ObservedGeneration = set.Generation
	if err := c.Status().Update(t.Context(), &set); err != nil {
		t.Error(err)
	}
}

func absent(t *testing.T, c client.Client, namespace, name string, object client.Object) {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	if !apierrors.IsNotFound(err) {
		t.Errorf("%T %q is there: %v", object, name, err)
	}
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func lines(touched []Touched) []string {
	var all []string
	for _, one := range touched {
		all = append(all, one.String())
	}
	return all
}

func sameType(a, b any) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }
