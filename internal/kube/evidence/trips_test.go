package evidence_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// trips are what is planted, at least one for each rule.
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
