package stage

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Namespace of everything that is exported and imported.
const Namespace = "bench"

// writers is how many requests of the bench are under way at once where order
// does not matter.
const writers = 8

// MakeNamespace makes the Namespace in all members.
func (s *Stage) MakeNamespace(ctx context.Context) error {
	for _, c := range s.Members() {
		err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// Serve makes Services without selector, each with one ready endpoint, so that
// nobody but the bench writes to them.
func (c *Cluster) Serve(ctx context.Context, names ...string) error {
	return Each(ctx, names, func(ctx context.Context, name string) error {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		}
		if err := c.Create(ctx, service); err != nil {
			return err
		}
		return c.Create(ctx, &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: Namespace,
				Labels: map[string]string{discoveryv1.LabelServiceName: name, discoveryv1.LabelManagedBy: "bench"},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
			}},
			Ports: []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(80))}},
		})
	})
}

// Retire deletes Services that Serve made.
func (c *Cluster) Retire(ctx context.Context, names ...string) error {
	return Each(ctx, names, func(ctx context.Context, name string) error {
		meta := metav1.ObjectMeta{Name: name, Namespace: Namespace}
		if err := c.Delete(ctx, &discoveryv1.EndpointSlice{ObjectMeta: meta}); client.IgnoreNotFound(err) != nil {
			return err
		}
		return client.IgnoreNotFound(c.Delete(ctx, &corev1.Service{ObjectMeta: meta}))
	})
}

// Export exports Services.
func (c *Cluster) Export(ctx context.Context, names ...string) error {
	return Each(ctx, names, func(ctx context.Context, name string) error {
		return c.Create(ctx, &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace}})
	})
}

// Withdraw takes exports back; those that are not there are passed over.
func (s *Stage) Withdraw(ctx context.Context, from *Cluster, names ...string) error {
	return Each(ctx, names, func(ctx context.Context, name string) error {
		return client.IgnoreNotFound(from.Delete(ctx, &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace}}))
	})
}

// Unexport takes exports back and waits until nothing of them is left in any
// member.
func (s *Stage) Unexport(ctx context.Context, from *Cluster, names ...string) error {
	if err := s.Withdraw(ctx, from, names...); err != nil {
		return err
	}
	gone := map[string]bool{}
	for _, name := range names {
		gone[name] = true
	}
	for _, c := range s.Members() {
		if err := Until(ctx, patience, fmt.Sprintf("the end of %d imports in %q", len(names), c.Name), func(ctx context.Context) error {
			var list mcsv1beta1.ServiceImportList
			if err := c.List(ctx, &list, client.InNamespace(Namespace)); err != nil {
				return err
			}
			for _, item := range list.Items {
				if gone[item.Name] {
					return fmt.Errorf("ServiceImport %q is still there", item.Name)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// Each does the same for all names, several at once.
func Each(ctx context.Context, names []string, do func(context.Context, string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, name := range names {
		group.Go(func() error { return do(ctx, name) })
	}
	return group.Wait()
}

// Names are n names with a common beginning.
func Names(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%04d", prefix, i)
	}
	return names
}
