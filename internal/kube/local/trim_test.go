package local_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/local"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

func slice(labels map[string]string) *discoveryv1.EndpointSlice {
	labels[discoveryv1.LabelServiceName] = "cart"
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "cart-1", Namespace: "shop", Labels: labels, ResourceVersion: "7",
			Annotations:     map[string]string{"endpoints.kubernetes.io/last-change-trigger-time": "now"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Service", Name: "cart"}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager"}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(80))}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"10.0.0.1"}, Hostname: ptr.To("a"), Zone: ptr.To("z"), NodeName: ptr.To("n"),
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: "cart-x"},
			Hints:      &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "z"}}},
		}},
	}
}

func trimmed(t *testing.T, object any) any {
	t.Helper()
	got, err := local.TrimSlice(object)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A slice of ours is updated from the copy in the cache: what would be missing
// there would be taken away from the object.
func TestOwnSlicesAreKeptWhole(t *testing.T) {
	for _, set := range []string{"set", ""} { // the label counts, whatever it says
		ours := map[string]string{v1alpha1.LabelClusterSet: set}
		want := slice(ours)
		want.ManagedFields = nil
		if diff := cmp.Diff(any(want), trimmed(t, slice(ours))); diff != "" {
			t.Error(diff)
		}
	}
}

// What is left out changes no plan: neither what is published of it nor what is
// served of it here.
func TestTrimmedSlicesMeanTheSame(t *testing.T) {
	whole := slice(map[string]string{})
	less := trimmed(t, slice(map[string]string{})).(*discoveryv1.EndpointSlice)
	if less.Endpoints[0].TargetRef != nil || less.Endpoints[0].Hints != nil || less.Annotations != nil {
		t.Errorf("nothing was left out: %v", less)
	}
	if published := services.Export(exportOf(*whole)); len(published.Slices) != 1 {
		t.Errorf("nothing is published: %+v", published)
	} else if diff := cmp.Diff(published, services.Export(exportOf(*less))); diff != "" {
		t.Errorf("published (-whole +trimmed):\n%s", diff)
	}
	if served := services.Import(importOf(*whole)); len(served.Slices) != 1 {
		t.Errorf("nothing is served: %+v", served)
	} else if diff := cmp.Diff(served, services.Import(importOf(*less))); diff != "" {
		t.Errorf("served (-whole +trimmed):\n%s", diff)
	}
}

func TestTombstonesPassThrough(t *testing.T) {
	gone := cache.DeletedFinalStateUnknown{Key: "shop/cart-1"}
	if got := trimmed(t, gone); got != any(gone) {
		t.Errorf("it became %v", got)
	}
	if got, err := local.TrimNamespace(gone); err != nil || got != any(gone) {
		t.Errorf("it became %v, %v", got, err)
	}
}

func TestNamespaceIsThereOrGoing(t *testing.T) {
	now := metav1.Now()
	got, err := local.TrimNamespace(&corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{
			Name: "shop", UID: "u", ResourceVersion: "7", DeletionTimestamp: &now, Labels: map[string]string{"team": "web"}, Annotations: map[string]string{"long": "text"},
		},
		Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}},
	})
	want := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "u", ResourceVersion: "7", DeletionTimestamp: &now, Labels: map[string]string{"team": "web"}}}
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

var tuple = types.NamespacedName{Namespace: "shop", Name: "cart"}

func exportOf(s discoveryv1.EndpointSlice) services.ExportObserved {
	return services.ExportObserved{
		Cluster: "east", Area: "area", Mode: v1alpha1.EndpointIPTypePodIP, Exchange: clusterset.ExchangeSlices, Connected: true, Tuple: tuple,
		Export:  &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}},
		Service: cart(), Slices: []discoveryv1.EndpointSlice{s},
	}
}

func importOf(s discoveryv1.EndpointSlice) services.ImportObserved {
	imported := cart()
	imported.Name, imported.UID = "antrea-mc-cart", "u"
	imported.Labels = map[string]string{v1alpha1.LabelClusterSet: "set", mcsv1beta1.LabelServiceName: "cart"}
	return services.ImportObserved{
		Cluster: "east", ClusterSet: "set", Tuple: tuple, NamespaceActive: true, Exported: true,
		Import: &v1alpha1.ResourceImport{Spec: v1alpha1.ResourceImportSpec{
			Kind: v1alpha1.KindServiceImport, Namespace: "shop", Name: "cart",
			ServiceImport: &mcsv1beta1.ServiceImport{Spec: mcsv1beta1.ServiceImportSpec{
				Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Name: "http", Port: 80}},
			}},
		}},
		Service: imported, OwnService: cart(), OwnSlices: []discoveryv1.EndpointSlice{s},
	}
}

func cart() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1"}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}
}
