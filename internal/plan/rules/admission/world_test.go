package admission_test

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

const area = "antrea-multicluster"

const (
	create = admissionv1.Create
	update = admissionv1.Update
	del    = admissionv1.Delete
)

func sa(namespace, name string) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: "system:serviceaccount:" + namespace + ":" + name}
}

var (
	member     = sa(area, "harbor-token")
	controller = sa(area, "antrea-mc-controller")
	elsewhere  = sa("tools", "deployer")
	person     = authenticationv1.UserInfo{Username: "someone", Groups: []string{"staff"}}
	admin      = authenticationv1.UserInfo{Username: "root", Groups: []string{"system:masters"}}
)

// bound is a caller whose ServiceAccount is bound to an ID; it holds the Role.
func bound(id string) admission.Caller {
	return admission.Caller{
		Account:         rule.Known(&admission.Account{Name: "harbor-token", Annotated: true, BoundID: id}),
		HoldsMemberRole: rule.Known(true),
	}
}

// unbound has a ServiceAccount without the annotation, which may hold the Role.
func unbound(holdsRole bool) admission.Caller {
	return admission.Caller{Account: rule.Known(&admission.Account{Name: "harbor-token"}), HoldsMemberRole: rule.Known(holdsRole)}
}

var missing = admission.Caller{Account: rule.Known[*admission.Account](nil), HoldsMemberRole: rule.Known(true)}
var unreadable = admission.Caller{Account: rule.Unreadable[*admission.Account]("no answer"), HoldsMemberRole: rule.Unreadable[bool]("no answer")}
var stranger = admission.Caller{Account: rule.Known[*admission.Account](nil), HoldsMemberRole: rule.Known(false)}

var place = admission.Area{Namespace: area, Policy: admission.Policy{Administrators: admission.DefaultAdministrators()}}

func fleet() *v1alpha2.ClusterSet {
	return &v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: "fleet", Namespace: area},
		Spec:       v1alpha2.ClusterSetSpec{ClusterID: "tower", Leaders: []v1alpha2.LeaderCluster{{ClusterID: "tower"}}},
	}
}

func announce(changes ...func(*v1alpha1.MemberClusterAnnounce)) *v1alpha1.MemberClusterAnnounce {
	a := &v1alpha1.MemberClusterAnnounce{
		ObjectMeta: metav1.ObjectMeta{Name: "member-announce-from-harbor", Namespace: area},
		ClusterID:  "harbor", ClusterSetID: "fleet", LeaderClusterID: "tower",
	}
	for _, change := range changes {
		change(a)
	}
	return a
}

// exportOf is a valid export of harbor.
func exportOf(kind string, changes ...func(*v1alpha1.ResourceExport)) *v1alpha1.ResourceExport {
	e := &v1alpha1.ResourceExport{ObjectMeta: metav1.ObjectMeta{
		Namespace: area, Finalizers: []string{v1alpha1.FinalizerExport},
		Labels: map[string]string{v1alpha1.LabelSourceClusterID: "harbor", v1alpha1.LabelSourceKind: kind},
	}}
	e.Spec.ClusterID, e.Spec.Kind = "harbor", kind
	switch kind {
	case v1alpha1.KindService, v1alpha1.KindEndpoints:
		e.Spec.Namespace, e.Spec.Name = "shop", "cart"
		e.Labels[v1alpha1.LabelSourceNamespace], e.Labels[v1alpha1.LabelSourceName] = "shop", "cart"
		if kind == v1alpha1.KindService {
			e.Name, e.Spec.Service = "harbor-shop-cart-service", &v1alpha1.ServiceExport{ServiceSpec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		} else {
			e.Name, e.Spec.Endpoints = "harbor-shop-cart-endpoints", &v1alpha1.EndpointsExport{Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.96.7.7"}}}}}
		}
	case v1alpha1.KindClusterInfo:
		e.Name, e.Spec.Namespace, e.Spec.Name = "harbor-clusterinfo", "kube-system", "harbor"
		e.Spec.ClusterInfo = &v1alpha1.ClusterInfo{
			ClusterID: "harbor", ServiceCIDR: "10.96.0.0/16", PodCIDRs: []string{"10.32.0.0/16"},
			GatewayInfos: []v1alpha1.GatewayInfo{{GatewayIP: "192.0.2.10"}},
		}
	case v1alpha1.KindLabelIdentity:
		e.Name, e.Finalizers = "harbor-4692e58ec24d9902", nil
		e.Spec.LabelIdentity = &v1alpha1.LabelIdentityExport{NormalizedLabel: "ns:kubernetes.io/metadata.name=shop&pod:app=cart,tier=web"}
	case v1alpha1.KindAntreaClusterNetworkPolicy:
		e.Name, e.Spec.Name = "strict", "strict"
		e.Spec.ClusterNetworkPolicy = &v1alpha1.ClusterNetworkPolicy{}
	}
	for _, change := range changes {
		change(e)
	}
	return e
}

// verdictCase is one row of a table: who asks what, and what is answered.
type verdictCase[T any] struct {
	op       admissionv1.Operation
	user     authenticationv1.UserInfo
	caller   admission.Caller
	old, new *T
	rule     string // that decides; empty: no rule objects
	allowed  bool
}

func (c verdictCase[T]) request(name string) admission.Request[T] {
	return admission.Request[T]{Operation: c.op, User: c.user, Namespace: area, Name: name, Old: c.old, Object: c.new}
}

func (c verdictCase[T]) check(t *testing.T, got admission.Verdict) {
	t.Helper()
	if got.Allowed != c.allowed || got.Rule != c.rule {
		t.Errorf("allowed %v by %q (%s), want %v by %q", got.Allowed, got.Rule, got.Message, c.allowed, c.rule)
	}
	if got.Allowed == (got.Message != "") || got.Allowed != (got.Code == 0) {
		t.Errorf("allowed %v with code %d and message %q", got.Allowed, got.Code, got.Message)
	}
}

type (
	clusterSet    = v1alpha2.ClusterSet
	endpointSlice = discoveryv1.EndpointSlice
)
