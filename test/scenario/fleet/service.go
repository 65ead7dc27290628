package fleet

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// Namespace makes a Namespace of the same name in several clusters, for one test.
func Namespace(t testing.TB, name string, clusters ...*Cluster) string {
	t.Helper()
	for _, c := range clusters {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := c.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("Namespace %q in %q: %v", name, c.Name, err)
		}
	}
	return name
}

// HTTP is the port most tests export.
var HTTP = corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}

// Service makes a Service without selector, and a slice with endpoints for it,
// which stand for its Pods.
func (c *Cluster) Service(t testing.TB, namespace, name string, ports []corev1.ServicePort, addresses ...string) *corev1.Service {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.ServiceSpec{Ports: ports},
	}
	c.Make(t, service)
	c.Endpoints(t, namespace, name, ports, addresses...)
	return service
}

// Endpoints makes the ready endpoints of a Service these addresses, in one slice.
func (c *Cluster) Endpoints(t testing.TB, namespace, name string, ports []corev1.ServicePort, addresses ...string) {
	t.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-test", Namespace: namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: name, discoveryv1.LabelManagedBy: "test"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{},
	}
	for _, port := range ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: ptr.To(port.Name), Port: ptr.To(port.Port), Protocol: ptr.To(port.Protocol)})
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		})
	}
	c.Put(t, slice)
}

// Export makes a ServiceExport.
func (c *Cluster) Export(t testing.TB, namespace, name string) *mcsv1beta1.ServiceExport {
	t.Helper()
	export := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	c.Make(t, export)
	return export
}

// Unexport deletes it.
func (c *Cluster) Unexport(t testing.TB, namespace, name string) {
	t.Helper()
	export := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	if err := c.Delete(t.Context(), export); err != nil {
		t.Fatalf("unexport %s/%s in %q: %v", namespace, name, c.Name, err)
	}
}

// Imported is what a cluster has of one import.
type Imported struct {
	Import  *mcsv1beta1.ServiceImport // nil when there is none
	Service *corev1.Service           // likewise
	Ready   map[string][]string       // ready addresses by source cluster, sorted
	Slices  []discoveryv1.EndpointSlice
}

// Import reads what a cluster has of one import.
func (c *Cluster) Import(t testing.TB, namespace, name string) (Imported, error) {
	seen := Imported{Ready: map[string][]string{}}
	found := &mcsv1beta1.ServiceImport{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, found); err == nil {
		seen.Import = found
	} else if !apierrors.IsNotFound(err) {
		return seen, err
	}
	service := &corev1.Service{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: identity.ImportedServiceName(name)}, service); err == nil {
		seen.Service = service
	} else if !apierrors.IsNotFound(err) {
		return seen, err
	}
	var list discoveryv1.EndpointSliceList
	if err := c.List(t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: identity.ImportedServiceName(name)}); err != nil {
		return seen, err
	}
	seen.Slices = list.Items
	for _, slice := range list.Items {
		source := slice.Labels[mcsv1beta1.LabelSourceCluster]
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				seen.Ready[source] = append(seen.Ready[source], endpoint.Addresses...)
			}
		}
	}
	for _, addresses := range seen.Ready {
		slices.Sort(addresses)
	}
	return seen, nil
}

// AwaitImport waits until the import is complete: a ServiceImport with an IP (if
// it has one at all), its Service, and exactly these ready endpoints by cluster.
func (c *Cluster) AwaitImport(t testing.TB, namespace, name string, ready map[string][]string) Imported {
	t.Helper()
	var seen Imported
	Eventually(t, fmt.Sprintf("%s/%s is imported into %q", namespace, name, c.Name), func() (err error) {
		if seen, err = c.Import(t, namespace, name); err != nil {
			return err
		}
		switch {
		case seen.Import == nil:
			return fmt.Errorf("no ServiceImport; ready endpoints %v", seen.Ready)
		case seen.Service == nil:
			return fmt.Errorf("no Service %q", identity.ImportedServiceName(name))
		case seen.Import.Spec.Type == mcsv1beta1.ClusterSetIP && len(seen.Import.Spec.IPs) == 0:
			return fmt.Errorf("the ServiceImport has no IP")
		}
		return sameReady(seen.Ready, ready)
	})
	return seen
}

func sameReady(got, want map[string][]string) error {
	if len(got) != len(want) {
		return fmt.Errorf("ready endpoints are %v, want %v", got, want)
	}
	for cluster, addresses := range want {
		if !slices.Equal(got[cluster], slices.Sorted(slices.Values(addresses))) {
			return fmt.Errorf("ready endpoints are %v, want %v", got, want)
		}
	}
	return nil
}

// AwaitNoImport waits until nothing of the import is left.
func (c *Cluster) AwaitNoImport(t testing.TB, namespace, name string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%s/%s is gone from %q", namespace, name, c.Name), func() error {
		seen, err := c.Import(t, namespace, name)
		switch {
		case err != nil:
			return err
		case seen.Import != nil:
			return fmt.Errorf("the ServiceImport is still there")
		case seen.Service != nil:
			return fmt.Errorf("Service %q is still there", seen.Service.Name)
		case len(seen.Slices) > 0:
			return fmt.Errorf("%d slices are still there", len(seen.Slices))
		}
		return nil
	})
}

// AwaitExport waits for a condition of a ServiceExport.
func (c *Cluster) AwaitExport(t testing.TB, namespace, name string, kind mcsv1beta1.ServiceExportConditionType, status metav1.ConditionStatus, reason mcsv1beta1.ServiceExportConditionReason) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	Eventually(t, fmt.Sprintf("ServiceExport %s/%s in %q says %s=%s, %s", namespace, name, c.Name, kind, status, reason), func() error {
		export := &mcsv1beta1.ServiceExport{}
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, export); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(export.Status.Conditions, string(kind))
		if condition == nil || condition.Status != status || condition.Reason != string(reason) {
			return fmt.Errorf("its conditions are %+v", export.Status.Conditions)
		}
		found = *condition
		return nil
	})
	return found
}
