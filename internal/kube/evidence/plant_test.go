package evidence_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/config"
)

// planted puts objects into a cluster until the subtest ends.
func planted(in func(*world) *place, objects ...client.Object) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		for _, object := range objects {
			in(w).put(t, object)
			t.Cleanup(func() { in(w).remove(t, object) })
		}
	}
}

func leader(w *world) *place { return w.leader }
func east(w *world) *place   { return w.east }

func account(name string, id ...string) *corev1.ServiceAccount {
	a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: name}}
	for _, value := range id {
		a.Annotations = map[string]string{v1alpha1.AnnotationClusterID: value}
	}
	return a
}

// token gives east another token for a while.
func token(of func(*testing.T, *world) *corev1.Secret) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		w.east.put(t, of(t, w))
		t.Cleanup(func() { w.east.put(t, secretOf(w.tokens["east"])) })
	}
}

func beat(at time.Duration) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		w.leader.remove(t, announceOf("east", time.Now()))
		w.leader.put(t, announceOf("east", time.Now().Add(at)))
		t.Cleanup(func() {
			w.leader.remove(t, announceOf("east", time.Now()))
			w.leader.put(t, announceOf("east", time.Now().Add(time.Hour)))
		})
	}
}

// redeploy gives the member controller of east another Deployment for a while.
func redeploy(edit func(*appsv1.Deployment)) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		w.east.deploy(t, inMember, "member", edit)
		t.Cleanup(func() { w.east.deploy(t, inMember, "member") })
	}
}

func exportOf(cluster, kind, namespace, name, object string) *v1alpha1.ResourceExport {
	x := &v1alpha1.ResourceExport{ObjectMeta: metav1.ObjectMeta{
		Namespace: area, Name: object, Finalizers: []string{v1alpha1.FinalizerExport},
		Labels: map[string]string{v1alpha1.LabelSourceClusterID: cluster, v1alpha1.LabelSourceKind: kind, v1alpha1.LabelSourceNamespace: namespace, v1alpha1.LabelSourceName: name},
	}}
	x.Spec.ClusterID, x.Spec.Kind, x.Spec.Namespace, x.Spec.Name = cluster, kind, namespace, name
	if kind == v1alpha1.KindService {
		x.Spec.Service = &v1alpha1.ServiceExport{ServiceSpec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	return x
}

func service(cluster, namespace, name string) *v1alpha1.ResourceExport {
	return exportOf(cluster, v1alpha1.KindService, namespace, name, cluster+"-"+namespace+"-"+name+"-service")
}

func network(cluster, serviceCIDR string) *v1alpha1.ResourceExport {
	x := exportOf(cluster, v1alpha1.KindClusterInfo, inMember, cluster, cluster+"-clusterinfo")
	x.Spec.ClusterInfo = &v1alpha1.ClusterInfo{ClusterID: cluster, ServiceCIDR: serviceCIDR}
	return x
}

func namespaced(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// serviceExports makes ServiceExports in Namespaces that stay.
func serviceExports(valid bool, names ...string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		for _, both := range names {
			namespace, name, _ := strings.Cut(both, "/")
			w.east.put(t, namespaced(namespace))
			export := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			planted(east, export)(t, w)
			if !valid {
				continue
			}
			w.east.await(t, "the export is valid", func() bool {
				if w.east.Get(t.Context(), client.ObjectKeyFromObject(export), export) != nil {
					return false
				}
				export.Status.Conditions = []metav1.Condition{{Type: "Valid", Status: metav1.ConditionTrue, Reason: "Valid", LastTransitionTime: metav1.Now()}}
				return w.east.Status().Update(t.Context(), export) == nil
			})
		}
	}
}

func (w *world) restoreSet(t *testing.T) {
	w.east.put(t, memberSet("east", "fleet", w.leader.config.Host))
	w.east.ready(t, "fleet")
}

func claimsServed(t *testing.T, w *world) {
	crds, err := config.LegacyCRDs()
	if err != nil {
		t.Fatal(err)
	}
	planted(east, crds[0])(t, w)
	w.east.await(t, "ClusterClaims are served", func() bool {
		return clientOf(t, w.east.config).List(t.Context(), &v1alpha2.ClusterClaimList{}) == nil
	})
}

func writtenAsV1alpha1(t *testing.T, w *world) {
	t.Cleanup(func() { w.east.remove(t, memberSet("east", "fleet", "")); w.restoreSet(t) })
	old := &unstructured.Unstructured{}
	old.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ClusterSet"))
	old.SetNamespace(inMember)
	old.SetName("fleet")
	change(t, w.east, old, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"by": "an old manifest"}) })
}

func gatewayNode(t *testing.T, w *world) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gate", Annotations: map[string]string{v1alpha1.AnnotationGateway: "true"}}}
	planted(east, node)(t, w)
	w.east.await(t, "the Node is ready", func() bool {
		if w.east.Get(t.Context(), client.ObjectKeyFromObject(node), node) != nil {
			return false
		}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.7"}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return w.east.Status().Update(t.Context(), node) == nil
	})
}
