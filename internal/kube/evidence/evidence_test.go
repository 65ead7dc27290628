package evidence_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// trip is something wrong that is planted in real clusters, and what one rule
// finds there: weight and cluster, as "REFUSE east".
type trip struct {
	rule, why string
	plant     func(*testing.T, *world)
	want      string
}

// Each rule is tripped once by something that is really there, and by nothing
// before and after.
func TestEveryRuleIsTrippedByWhatIsRead(t *testing.T) {
	w := newWorld(t)
	for _, f := range preflight.Run(w.read(t).Evidence) {
		t.Errorf("of a healthy ClusterSet: %s %s: %s %v", f.Severity, f.Rule, f.Message, f.Evidence)
	}
	if t.Failed() {
		return
	}
	tripped := map[string]bool{}
	for _, c := range trips() {
		t.Run(c.rule+" "+c.why, func(t *testing.T) {
			c.plant(t, w)
			findings := find(c.rule, w.read(t).Evidence)
			if got := weights(findings); got != c.want {
				t.Errorf("found %q, want %q\n%+v", got, c.want, findings)
			}
		})
		tripped[c.rule] = true
	}
	for _, r := range preflight.Rules() {
		if !tripped[r.ID] {
			t.Errorf("nothing trips %s", r.ID)
		}
	}
	for _, f := range preflight.Run(w.read(t).Evidence) {
		t.Errorf("when all is taken back: %s %s: %s %v", f.Severity, f.Rule, f.Message, f.Evidence)
	}
}

func find(id string, e preflight.Evidence) []rule.Finding {
	for _, check := range preflight.Checks() {
		if check.ID == id {
			return check.Find(e)
		}
	}
	return nil
}

func weights(findings []rule.Finding) string {
	var all []string
	for _, f := range findings {
		word := f.Severity.String()
		switch {
		case f.Unknown:
			word = "UNKNOWN"
		case f.Broken:
			word = "FIX"
		}
		all = append(all, strings.TrimSpace(word+" "+f.Cluster))
	}
	return strings.Join(all, ", ")
}

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

func trips() []trip {
	return []trip{
		{"UPG-CHK-1", "an announce whose ID nobody is bound to", planted(leader, announceOf("north", time.Now())), "REFUSE north"},
		{"UPG-CHK-2", "a second ServiceAccount for one ID", planted(leader, account("east-too", "east")), "FIX east"},
		{"UPG-CHK-3", "an empty annotation", planted(leader, account("empty", "")), "FIX"},
		{"UPG-CHK-4", "the credential that all members shared",
			planted(leader, account("antrea-mc-member-access-sa"), grant("antrea-mc-member-cluster-rolebinding", "antrea-mc-member-access-sa")), "FIX"},
		{"UPG-CHK-4", "an account of another Namespace", planted(leader, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "pipeline"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "pipeline"}},
		}), "FIX"},
		{"UPG-CHK-5", "the token of another member", token(func(_ *testing.T, w *world) *corev1.Secret { return secretOf(w.tokens["west"]) }), "REFUSE east"},
		{"UPG-CHK-5", "a token nobody made", token(func(*testing.T, *world) *corev1.Secret { return secretOf("a.b.c") }), "REFUSE east"},
		{"UPG-CHK-5", "a Secret of another type", token(func(*testing.T, *world) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: secretOf("").ObjectMeta, Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": nil, "tls.key": nil}}
		}), "REFUSE east"},
		{"UPG-CHK-5", "no Secret", func(t *testing.T, w *world) {
			w.east.remove(t, secretOf(""))
			t.Cleanup(func() { w.east.put(t, secretOf(w.tokens["east"])) })
		}, "REFUSE east"},
		{"UPG-CHK-6", "a controller that is older than its credential", func(t *testing.T, w *world) {
			w.east.pod(t, inMember, time.Now().Add(-time.Hour))
			t.Cleanup(func() { w.east.pod(t, inMember, time.Now().Add(time.Hour)) })
		}, "REFUSE east"},
		{"UPG-CHK-7", "an ID that continues another", planted(leader, account("east-1", "east-1")), "REFUSE east-1"},
		{"UPG-CHK-8", "a clock two days behind", beat(-48 * time.Hour), "FIX east"},
		{"UPG-CHK-8", "a clock two days ahead", beat(48 * time.Hour), "FIX east"},
		{"UPG-CHK-8", "no heartbeat for thirteen hours", beat(-13 * time.Hour), "REFUSE east"},
		{"UPG-CHK-9", "the CRD of ClusterClaims", claimsServed, "WARN east"},
		{"UPG-CHK-10", "another name in a member", func(t *testing.T, w *world) {
			w.east.remove(t, memberSet("east", "fleet", ""))
			w.east.put(t, memberSet("east", "flotte", w.leader.config.Host))
			t.Cleanup(func() { w.east.remove(t, memberSet("east", "flotte", "")); w.restoreSet(t) })
		}, "REFUSE east"},
		{"UPG-CHK-11", "a write through v1alpha1", writtenAsV1alpha1, "WARN east"},
		{"UPG-CHK-12", "two Services of one import name", planted(leader, service("east", "a-b", "c"), service("west", "a", "b-c")), "FIX"},
		{"UPG-CHK-13", "two Services of one export name", serviceExports(false, "a-b/c", "a/b-c"), "FIX east"},
		{"UPG-CHK-14", "an export that another member would write", func(t *testing.T, w *world) {
			planted(leader, service("east-1", "shop", "cart"))(t, w)
			serviceExports(false, "1-shop/cart")(t, w)
		}, "FIX east-1"},
		{"UPG-CHK-15", "an export without labels", func(t *testing.T, w *world) {
			x := service("east", "shop", "cart")
			x.Labels = nil
			planted(leader, x)(t, w)
		}, "FIX east"},
		{"UPG-CHK-16", "the selector of v1.5", redeploy(func(d *appsv1.Deployment) {
			old := map[string]string{"control-plane": "antrea-mc-controller"}
			d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = old, old
		}), "REFUSE east"},
		{"UPG-CHK-17", "a member newer than its leader", redeploy(func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = "registry.example:5000/antrea/antrea-mc-controller:v2.8.0"
		}), "REFUSE east, WARN"},
		{"UPG-CHK-18", "an ID with a dot", planted(leader, account("dotted", "ea.st")), "FIX ea.st"},
		{"UPG-CHK-18", "a ServiceAccount for two IDs", planted(leader, account("both", "east,west")), "FIX east,west"},
		{"UPG-CHK-19", "one Service range in two members", planted(leader, network("east", "10.96.0.0/16"), network("west", "10.96.128.0/17")), "FIX west"},
		{"UPG-CHK-20", "tunnels in one member only", planted(east, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "antrea-config"},
			Data:       map[string]string{"antrea-agent.conf": "tunnelType: vxlan\nmulticluster:\n  enableGateway: true\n"},
		}), "WARN"},
		{"UPG-CHK-21", "a tier that no member has", func(t *testing.T, w *world) {
			x := exportOf("", v1alpha1.KindAntreaClusterNetworkPolicy, "", "strict", "strict")
			x.Spec.ClusterNetworkPolicy = &v1alpha1.ClusterNetworkPolicy{Tier: "secops", Priority: v1alpha1.Opaque{Raw: []byte("1")}}
			planted(leader, x)(t, w)
		}, "WARN east, WARN west"},
		{"UPG-CHK-22", "an import of nothing", planted(leader, &v1alpha1.ResourceImport{
			ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: "shop-cart-service"}, Spec: v1alpha1.ResourceImportSpec{Kind: v1alpha1.KindServiceImport, Namespace: "shop", Name: "cart"},
		}), "FIX"},
		{"UPG-CHK-22", "an imported Service of nothing", func(t *testing.T, w *world) {
			w.east.put(t, namespaced("shop"))
			planted(east, &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "antrea-mc-cart", Annotations: map[string]string{v1alpha1.AnnotationImportedService: "true"}},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
			})(t, w)
		}, "FIX east"},
		{"UPG-CHK-23", "no Node for a second Pod", redeploy(func(d *appsv1.Deployment) { d.Spec.Strategy = appsv1.DeploymentStrategy{} }), "WARN east"},
		{"UPG-CHK-24", "a process of three hundred days", func(t *testing.T, w *world) {
			w.leader.pod(t, area, time.Now().AddDate(0, 0, -300))
			t.Cleanup(func() {
				w.leader.remove(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: "antrea-mc-controller-1"}})
			})
		}, "WARN"},
		{"UPG-CHK-25", "a name of sixty letters", serviceExports(false, "shop/"+strings.Repeat("x", 60)), "FIX east"},
		{"UPG-CHK-26", "a valid export that is not at the leader", serviceExports(true, "shop/lost"), "FIX east"},
		{"UPG-CHK-26", "a Node that could be the gateway", gatewayNode, "FIX east"},
		{"UPG-CHK-27", "ready here and silent there", beat(-time.Minute), "REFUSE east"},
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

// What a member exports is compared with what its leader has, address by address.
func TestAnExportThatArrivedIsNoFinding(t *testing.T) {
	w := newWorld(t)
	serviceExports(true, "shop/cart")(t, w)
	exposed := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	ready := true
	planted(east, exposed, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "cart-1", Labels: map[string]string{discoveryv1.LabelServiceName: "cart"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.9.9.9"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	})(t, w)
	if err := w.east.Get(t.Context(), client.ObjectKeyFromObject(exposed), exposed); err != nil {
		t.Fatal(err)
	}
	endpoints := exportOf("east", v1alpha1.KindEndpoints, "shop", "cart", "east-shop-cart-endpoints")
	endpoints.Spec.Endpoints = &v1alpha1.EndpointsExport{Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: exposed.Spec.ClusterIP}}}}}
	planted(leader, service("east", "shop", "cart"), endpoints)(t, w)
	if findings := find("UPG-CHK-26", w.read(t).Evidence); len(findings) > 0 {
		t.Errorf("%+v", findings)
	}
	endpoints.Spec.Endpoints.Subsets[0].Addresses[0].IP = "10.9.9.9"
	w.leader.remove(t, endpoints)
	planted(leader, endpoints)(t, w)
	if got := weights(find("UPG-CHK-26", w.read(t).Evidence)); got != "FIX east" {
		t.Errorf("another address is %q", got)
	}
}
