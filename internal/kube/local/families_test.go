package local_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/internal/kube/local"
)

func TestFamilies(t *testing.T) {
	cidrs := func(name string, ranges ...string) client.Object {
		return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: ranges}}
	}
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		objects []client.Object
		fails   error
		want    []corev1.IPFamily
		err     error
	}{
		"one family":             {objects: []client.Object{cidrs("kubernetes", "10.96.0.0/16")}, want: []corev1.IPFamily{"IPv4"}},
		"two in one object":      {objects: []client.Object{cidrs("kubernetes", "fd96::/112", "10.96.0.0/16")}, want: []corev1.IPFamily{"IPv4", "IPv6"}},
		"two in two objects":     {objects: []client.Object{cidrs("a", "fd96::/112"), cidrs("b", "10.96.0.0/16")}, want: []corev1.IPFamily{"IPv4", "IPv6"}},
		"nothing found":          {},
		"kind is not served":     {fails: &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ServiceCIDR"}}},
		"a failure is no answer": {fails: broken, err: broken},
	} {
		t.Run(name, func(t *testing.T) {
			c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(tc.objects...).Build(), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if tc.fails != nil {
						return tc.fails
					}
					return c.List(ctx, list, options...)
				},
			})
			got, err := local.Families(t.Context(), c)
			if !slices.Equal(got, tc.want) || !errors.Is(err, tc.err) {
				t.Errorf("the families are %v (%v), want %v (%v)", got, err, tc.want, tc.err)
			}
		})
	}
}
