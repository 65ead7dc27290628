package fleet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// Upstream plays a member that knows only the wire: a test writes by hand what
// such a member's controller would write, into the common area.
type Upstream struct {
	ID    string
	fleet *Fleet
}

// Upstream makes such a member. Its announce carries none of our marks.
func (f *Fleet) Upstream(t testing.TB, id string) *Upstream {
	t.Helper()
	u := &Upstream{ID: id, fleet: f}
	f.Leader.Make(t, u.announce())
	t.Cleanup(func() { f.Leader.Discard(t, u.announce()) })
	return u
}

func (u *Upstream) announce() *v1alpha1.MemberClusterAnnounce {
	return &v1alpha1.MemberClusterAnnounce{
		ObjectMeta: metav1.ObjectMeta{Name: identity.AnnounceName(u.ID), Namespace: u.fleet.Area},
		ClusterID:  u.ID, ClusterSetID: u.fleet.Name, LeaderClusterID: "leader",
	}
}

// Beat is a heartbeat after the first.
func (u *Upstream) Beat(t testing.TB) {
	t.Helper()
	announce := u.announce()
	u.fleet.Leader.Change(t, announce, func() {
		metav1.SetMetaDataAnnotation(&announce.ObjectMeta, v1alpha1.AnnotationTouch, time.Now().Format(time.RFC3339))
	})
}

// Leave deletes the announce; the leader then withdraws the exports.
func (u *Upstream) Leave(t testing.TB) {
	t.Helper()
	if err := u.fleet.Leader.Delete(t.Context(), u.announce()); err != nil {
		t.Fatalf("member %q leaves: %v", u.ID, err)
	}
}

// Service is the Service export such a member writes.
func (u *Upstream) Service(namespace, name string, ports ...corev1.ServicePort) *v1alpha1.ResourceExport {
	export := u.export(namespace, name, v1alpha1.KindService, identity.ServiceExportName(u.ID, types.NamespacedName{Namespace: namespace, Name: name}))
	export.Spec.Service = &v1alpha1.ServiceExport{ServiceSpec: corev1.ServiceSpec{Ports: ports}}
	return export
}

// Endpoints is the Endpoints export such a member writes: all addresses answer
// on the ports of the Service.
func (u *Upstream) Endpoints(namespace, name string, ports []corev1.ServicePort, addresses ...string) *v1alpha1.ResourceExport {
	export := u.export(namespace, name, v1alpha1.KindEndpoints, identity.EndpointsExportName(u.ID, types.NamespacedName{Namespace: namespace, Name: name}))
	export.Spec.Endpoints = &v1alpha1.EndpointsExport{Subsets: []corev1.EndpointSubset{Subset(ports, addresses...)}}
	return export
}

func (u *Upstream) export(namespace, name, kind, object string) *v1alpha1.ResourceExport {
	return &v1alpha1.ResourceExport{
		ObjectMeta: metav1.ObjectMeta{
			Name: object, Namespace: u.fleet.Area,
			Labels: map[string]string{
				v1alpha1.LabelSourceClusterID: u.ID, v1alpha1.LabelSourceKind: kind,
				v1alpha1.LabelSourceNamespace: namespace, v1alpha1.LabelSourceName: name,
			},
			Finalizers: []string{v1alpha1.FinalizerExport},
		},
		Spec: v1alpha1.ResourceExportSpec{ClusterID: u.ID, Namespace: namespace, Name: name, Kind: kind},
	}
}

// Export writes both exports of a Service, Service first.
func (u *Upstream) Export(t testing.TB, namespace, name string, ports []corev1.ServicePort, addresses ...string) {
	t.Helper()
	u.fleet.Leader.Put(t, u.Service(namespace, name, ports...))
	u.fleet.Leader.Put(t, u.Endpoints(namespace, name, ports, addresses...))
}

// Unexport deletes both.
func (u *Upstream) Unexport(t testing.TB, namespace, name string) {
	t.Helper()
	for _, export := range []client.Object{u.Service(namespace, name), u.Endpoints(namespace, name, nil)} {
		if err := u.fleet.Leader.Delete(t.Context(), export); err != nil {
			t.Fatalf("unexport %s/%s of %q: %v", namespace, name, u.ID, err)
		}
	}
}

// Subset is one set of ready addresses behind the ports of a Service.
func Subset(ports []corev1.ServicePort, addresses ...string) corev1.EndpointSubset {
	var subset corev1.EndpointSubset
	for _, address := range addresses {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: address})
	}
	for _, port := range ports {
		subset.Ports = append(subset.Ports, corev1.EndpointPort{Name: port.Name, Port: port.Port, Protocol: port.Protocol})
	}
	return subset
}

// UnderUpstream makes a ClusterSet whose leader is played by the test: no
// controller of ours runs there, and members have no right to slices.
func UnderUpstream(t testing.TB, l *lab.Lab, name string) *Fleet {
	t.Helper()
	f := &Fleet{Name: name, Area: "area-" + name, Lab: l}
	cluster := Open(t, l, "leader")
	cluster.Install(t, config.Leader, config.Options{Namespace: f.Area}, "Deployment", "PodDisruptionBudget")
	f.Leader = &Controller{Cluster: cluster, Namespace: f.Area, ID: "leader", fleet: f}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.MemberClusterRole, Namespace: f.Area}}
	cluster.Change(t, role, func() {
		kept := role.Rules[:0]
		for _, rule := range role.Rules {
			if !contains(rule.Resources, "endpointslices") {
				kept = append(kept, rule)
			}
		}
		role.Rules = kept
	})
	return f
}

// Answer does on a member's announce what an upstream leader does: it puts its
// finalizer there.
func (f *Fleet) Answer(t testing.TB, id string) {
	t.Helper()
	announce := &v1alpha1.MemberClusterAnnounce{ObjectMeta: metav1.ObjectMeta{Name: identity.AnnounceName(id), Namespace: f.Area}}
	f.Leader.Change(t, announce, func() {
		announce.Finalizers = []string{v1alpha1.FinalizerAnnouncePrefix + id}
	})
}

// Offer writes the imports an upstream leader makes of a Service. Their names
// are the test's choice: importers must go by the tuple (T-I-10).
func (f *Fleet) Offer(t testing.TB, object, namespace, name string, ports []corev1.ServicePort, addresses ...string) (service, endpoints *v1alpha1.ResourceImport) {
	t.Helper()
	service = f.importOf(object+"-service", namespace, name, v1alpha1.KindServiceImport)
	service.Spec.ServiceImport = &mcsv1beta1.ServiceImport{Spec: mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP}}
	for _, port := range ports {
		service.Spec.ServiceImport.Spec.Ports = append(service.Spec.ServiceImport.Spec.Ports,
			mcsv1beta1.ServicePort{Name: port.Name, Protocol: port.Protocol, Port: port.Port})
	}
	endpoints = f.importOf(object+"-endpoints", namespace, name, v1alpha1.KindEndpoints)
	endpoints.Spec.Endpoints = &v1alpha1.EndpointsImport{Subsets: []corev1.EndpointSubset{Subset(ports, addresses...)}}
	f.Leader.Put(t, service)
	f.Leader.Put(t, endpoints)
	return service, endpoints
}

func (f *Fleet) importOf(object, namespace, name, kind string) *v1alpha1.ResourceImport {
	return &v1alpha1.ResourceImport{
		ObjectMeta: metav1.ObjectMeta{Name: object, Namespace: f.Area},
		Spec:       v1alpha1.ResourceImportSpec{Namespace: namespace, Name: name, Kind: kind},
	}
}
