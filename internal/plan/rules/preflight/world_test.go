package preflight_test

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

const area = "antrea-multicluster"

var now = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// healthy is a ClusterSet of upstream's v2.7 with members east and west, about
// which no check has anything to say.
func healthy() *preflight.Evidence {
	return &preflight.Evidence{
		CLI:     rule.Known("v2.7.0"),
		Members: []preflight.Member{memberOf("east", 1), memberOf("west", 2)},
		Leader: preflight.Leader{
			Cluster:   clusterOf("tower", "leader", area),
			Namespace: area, Now: rule.Known(now),
			Announces: rule.Known([]v1alpha1.MemberClusterAnnounce{announceOf("east"), announceOf("west")}),
			Exports:   rule.Known([]v1alpha1.ResourceExport{serviceExport("east"), endpointsExport("east"), infoExport("east", 1), infoExport("west", 2)}),
			Imports: rule.Known([]v1alpha1.ResourceImport{
				importOf("shop-cart-service", v1alpha1.KindServiceImport, "shop", "cart"), importOf("shop-cart-endpoints", v1alpha1.KindEndpoints, "shop", "cart"),
				infoImport("east"), infoImport("west"),
			}),
			Slices: rule.Known([]discoveryv1.EndpointSlice{}),
			Accounts: rule.Known([]admission.Account{
				{Name: "default"}, {Name: "antrea-mc-controller"},
				{Name: "east-token", Annotated: true, BoundID: "east"}, {Name: "west-token", Annotated: true, BoundID: "west"},
			}),
			Grants: rule.Known([]preflight.Grant{
				grantOf("east-token", "east-token"), grantOf("west-token", "west-token"),
				{Kind: "RoleBinding", Name: "controller", WritesExports: true, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: area, Name: "antrea-mc-controller"}}},
				{Kind: "ClusterRoleBinding", Name: "system:controller:generic-garbage-collector", WritesExports: true, Builtin: true,
					Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kube-system", Name: "generic-garbage-collector"}}},
				{Kind: "ClusterRoleBinding", Name: "cluster-admin", WritesExports: true, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:masters"}}},
			}),
			Secrets:   rule.Known([]string{"east-token", "west-token"}),
			Ranges:    rule.Known([]netip.Prefix{netip.MustParsePrefix("172.16.0.0/16")}),
			Stretched: rule.Known(false),
		},
	}
}

func clusterOf(id, role, namespace string) preflight.Cluster {
	return preflight.Cluster{
		UID: types.UID("uid-" + id), Kubernetes: rule.Known("v1.34.1"), Nodes: rule.Known(3),
		ClusterSets: rule.Known([]v1alpha2.ClusterSet{setOf(id, namespace)}),
		Legacy:      rule.Known(preflight.Legacy{StoredVersions: []string{"v1alpha2"}}),
		Controllers: rule.Known([]preflight.Controller{{
			Role: role, Namespace: namespace, Name: "antrea-mc-controller", Upstream: true, Version: "v2.7.0",
			Selector:    map[string]string{"app": "antrea", "component": "antrea-mc-controller"},
			HostNetwork: true, Ports: []int32{9443, 8080}, Replicas: 1, Surge: true, Started: []time.Time{now.Add(-24 * time.Hour)},
		}}),
	}
}

func setOf(id, namespace string) v1alpha2.ClusterSet {
	return v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: "fleet", Namespace: namespace},
		Spec:       v1alpha2.ClusterSetSpec{ClusterID: id, Leaders: []v1alpha2.LeaderCluster{{ClusterID: "tower"}}},
		Status:     v1alpha1.ClusterSetStatus{Conditions: []v1alpha1.ClusterSetCondition{{Type: v1alpha1.ClusterSetReady, Status: corev1.ConditionTrue}}},
	}
}

func memberOf(id string, n byte) preflight.Member {
	m := preflight.Member{
		Cluster: clusterOf(id, "member", "kube-system"), ID: id,
		Credential: rule.Known(preflight.Credential{Secret: id + "-token", Namespace: area, Account: id + "-token", Written: now.Add(-48 * time.Hour), Directed: now.Add(-48 * time.Hour)}),
		Settings:   rule.Known(preflight.Settings{Overlay: "geneve", EndpointIPType: v1alpha1.EndpointIPTypeClusterIP, Encryption: "none"}),
		Exported:   rule.Known([]preflight.Exported{}),
		Imported:   rule.Known([]preflight.Imported{{Kind: "Service", NamespacedName: types.NamespacedName{Namespace: "shop", Name: "antrea-mc-cart"}}}),
		Tiers:      rule.Known([]string{"baseline"}),
		Gateways:   rule.Known([]v1alpha1.Gateway{{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, GatewayIP: "192.0.2.1", InternalIP: "10.0.0.1"}}),
		GatewayNodes: rule.Known([]preflight.GatewayNode{
			{Name: "node-1", Ready: true, GatewayIP: "192.0.2.1", InternalIP: "10.0.0.1"}, {Name: "node-2", GatewayIP: "192.0.2.2"},
		}),
		Labels: rule.Known([]string{}),
	}
	if n == 1 {
		m.Exported = rule.Known([]preflight.Exported{exportedOf("shop", "cart")})
	}
	return m
}

func exportedOf(namespace, name string) preflight.Exported {
	return preflight.Exported{
		NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}, Valid: true,
		Ports: []corev1.ServicePort{{Name: "http", Port: 80}}, Addresses: []string{"10.1.7.7"},
	}
}

func announceOf(id string) v1alpha1.MemberClusterAnnounce {
	return v1alpha1.MemberClusterAnnounce{
		ObjectMeta: metav1.ObjectMeta{
			Name: "member-announce-from-" + id, Namespace: area, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
			Annotations: map[string]string{v1alpha1.AnnotationTouch: now.Add(-5 * time.Second).Format(time.RFC3339)},
			Finalizers:  []string{v1alpha1.FinalizerAnnouncePrefix + id},
		},
		ClusterID: id, ClusterSetID: "fleet", LeaderClusterID: "tower",
	}
}

func grantOf(name, account string) preflight.Grant {
	return preflight.Grant{Kind: "RoleBinding", Name: name, MemberRole: true, WritesExports: true,
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: area, Name: account}}}
}

func exportOf(cluster, kind, namespace, name, object string) v1alpha1.ResourceExport {
	x := v1alpha1.ResourceExport{ObjectMeta: metav1.ObjectMeta{
		Name: object, Namespace: area, Finalizers: []string{v1alpha1.FinalizerExport},
		Labels: map[string]string{v1alpha1.LabelSourceClusterID: cluster, v1alpha1.LabelSourceKind: kind, v1alpha1.LabelSourceNamespace: namespace, v1alpha1.LabelSourceName: name},
	}}
	x.Spec.ClusterID, x.Spec.Kind, x.Spec.Namespace, x.Spec.Name = cluster, kind, namespace, name
	return x
}

func serviceExportOf(cluster, namespace, name string) v1alpha1.ResourceExport {
	x := exportOf(cluster, v1alpha1.KindService, namespace, name, cluster+"-"+namespace+"-"+name+"-service")
	x.Spec.Service = &v1alpha1.ServiceExport{ServiceSpec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Protocol: "TCP", Port: 80}}}}
	return x
}

func serviceExport(cluster string) v1alpha1.ResourceExport {
	return serviceExportOf(cluster, "shop", "cart")
}

func endpointsExport(cluster string) v1alpha1.ResourceExport {
	x := exportOf(cluster, v1alpha1.KindEndpoints, "shop", "cart", cluster+"-shop-cart-endpoints")
	x.Spec.Endpoints = &v1alpha1.EndpointsExport{Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.1.7.7"}}}}}
	return x
}

func infoExport(cluster string, n byte) v1alpha1.ResourceExport {
	x := exportOf(cluster, v1alpha1.KindClusterInfo, "kube-system", cluster, cluster+"-clusterinfo")
	x.Spec.ClusterInfo = &v1alpha1.ClusterInfo{ClusterID: cluster, ServiceCIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, n, 0, 0}), 16).String()}
	return x
}

func policyExport(tier string) v1alpha1.ResourceExport {
	x := exportOf("", v1alpha1.KindAntreaClusterNetworkPolicy, "", "strict", "strict")
	x.Spec.ClusterNetworkPolicy = &v1alpha1.ClusterNetworkPolicy{Tier: tier}
	return x
}

func importOf(object, kind, namespace, name string) v1alpha1.ResourceImport {
	return v1alpha1.ResourceImport{ObjectMeta: metav1.ObjectMeta{Name: object, Namespace: area}, Spec: v1alpha1.ResourceImportSpec{Kind: kind, Namespace: namespace, Name: name}}
}

func infoImport(cluster string) v1alpha1.ResourceImport {
	i := importOf(cluster+"-clusterinfo", v1alpha1.KindClusterInfo, area, cluster+"-clusterinfo")
	i.Spec.ClusterInfo = &v1alpha1.ClusterInfo{ClusterID: cluster}
	return i
}

func sliceOf(cluster, namespace, name string, addresses ...string) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			mcsv1beta1.LabelSourceCluster: cluster, mcsv1beta1.LabelServiceName: name, v1alpha1.LabelServiceNamespace: namespace,
		}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: addresses}},
	}
}

// edit changes the value of something that was read.
func edit[T any](r *rule.Read[T], change func(*T)) {
	value, ok := r.Get()
	if !ok {
		panic("not known")
	}
	change(&value)
	*r = rule.Known(value)
}

func add[T any](r *rule.Read[[]T], values ...T) {
	edit(r, func(list *[]T) { *list = append(*list, values...) })
}
