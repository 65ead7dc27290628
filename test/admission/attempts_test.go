package admission_test

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// Answers that are no rule.
const (
	noRight = "no right (RBAC)"
	nobody  = "not known (401)"
	allowed = "allowed"
)

// attempt is what somebody tries, by each of some ways.
type attempt struct {
	what, by string
	ways     []way
	// object is what is there already, or for a new one nil.
	object client.Object
	// forge makes what is wanted out of a correct object of the one who tries.
	forge  func() client.Object
	change func(client.Object)
	answer string
}

type (
	rex = v1alpha1.ResourceExport
	mca = v1alpha1.MemberClusterAnnounce
	eps = discoveryv1.EndpointSlice
	lse = coordinationv1.Lease
)

// wrong makes a new export that is wrong in one point.
func wrong(what, answer string, change func(*rex)) attempt {
	return attempt{what: "export: " + what, by: east, ways: anew, answer: answer, forge: func() client.Object {
		e := serviceExport(east, "fresh")
		change(e)
		return e
	}}
}

// wrongOf does so with another kind of export.
func wrongOf(make func() *rex, what, answer string, change func(*rex)) attempt {
	a := wrong(what, answer, nil)
	a.forge = func() client.Object { e := make(); change(e); return e }
	return a
}

// changed changes an object that is there.
func changed[T any](object client.Object, what, answer string, ways []way, change func(T)) attempt {
	return attempt{what: what, by: east, ways: ways, answer: answer, object: object, change: func(o client.Object) {
		if typed, ok := o.(T); ok {
			change(typed)
		}
	}}
}

func as(by string, a attempt) attempt { a.by = by; return a }

func newExports() []attempt {
	net := func() *rex { return network(north, 60) }
	return []attempt{
		wrong("in the name of another cluster", "ADM-RE-13", func(e *rex) { e.Spec.ClusterID = "west" }),
		wrong("wholly that of another cluster", "ADM-RE-13", func(e *rex) { *e = *serviceExport("west", "fresh") }),
		wrong("of no cluster", "ADM-RE-13", func(e *rex) { e.Spec.ClusterID = "" }),
		wrong("labelled as another cluster's", "ADM-RE-14", func(e *rex) { e.Labels[v1alpha1.LabelSourceClusterID] = "west" }),
		wrong("labelled as another kind", "ADM-RE-15", func(e *rex) { e.Labels[v1alpha1.LabelSourceKind] = v1alpha1.KindEndpoints }),
		wrong("labelled with another Service", "ADM-RE-16", func(e *rex) { e.Labels[v1alpha1.LabelSourceName] = "pay" }),
		wrong("labelled with another Namespace", "ADM-RE-16", func(e *rex) { e.Labels[v1alpha1.LabelSourceNamespace] = "bank" }),
		wrong("under another cluster's name", "ADM-RE-17", func(e *rex) { e.Name = "west-shop-fresh-service" }),
		wrong("under a free name", "ADM-RE-17", func(e *rex) { e.Name = "anything" }),
		wrong("a policy for the whole set", "ADM-RE-10", func(e *rex) {
			e.Spec.Kind, e.Spec.Service, e.Spec.ClusterNetworkPolicy = v1alpha1.KindAntreaClusterNetworkPolicy, nil, &v1alpha1.ClusterNetworkPolicy{Priority: v1alpha1.Opaque{Raw: []byte("5")}}
		}),
		wrong("of a kind that is none", "ADM-RE-10", func(e *rex) { e.Spec.Kind = "Secret" }),
		wrong("without what it exports", "ADM-RE-11", func(e *rex) { e.Spec.Service = nil }),
		wrong("of a name no Service can have", "ADM-RE-12", func(e *rex) { e.Spec.Name = "Fresh_1" }),
		wrong("of a Namespace that is none", "ADM-RE-12", func(e *rex) { e.Spec.Namespace = "a.b" }),
		wrong("without the leader's finalizer", "ADM-RE-19", func(e *rex) { e.Finalizers = nil }),
		wrong("with a finalizer of its own", "WK-36", func(e *rex) { e.Finalizers = append(e.Finalizers, "intruder.example/stay") }),
		as(north, wrongOf(net, "the network of another cluster", "ADM-RE-18", func(e *rex) { e.Spec.ClusterInfo.ClusterID = "west" })),
		as(north, wrongOf(net, "a network that is everything", "WK-9", func(e *rex) { e.Spec.ClusterInfo.ServiceCIDR = "0.0.0.0/0" })),
		as(north, wrongOf(net, "the Service range of another cluster", "WK-9", func(e *rex) { e.Spec.ClusterInfo.ServiceCIDR = "10.21.0.0/16" })),
		as(north, wrongOf(net, "a part of another cluster's Pod range", "WK-9", func(e *rex) { e.Spec.ClusterInfo.PodCIDRs = []string{"10.121.5.0/24"} })),
		as(north, wrongOf(net, "the gateway of another cluster", "WK-9", func(e *rex) { e.Spec.ClusterInfo.GatewayInfos[0].GatewayIP = "192.0.2.21" })),
		as(north, wrongOf(net, "a gateway that is each Node itself", "WK-9", func(e *rex) { e.Spec.ClusterInfo.GatewayInfos[0].GatewayIP = "127.0.0.1" })),
		as(north, wrongOf(net, "a range that is none", "WK-9", func(e *rex) { e.Spec.ClusterInfo.PodCIDRs = []string{"10.0.0.0/40"} })),
		as(north, wrongOf(func() *rex { return labels(north) }, "labels under a hash that is not theirs", "ADM-RE-17", func(e *rex) { e.Name = north + "-0123456789abcdef" })),
	}
}

func changedExports() []attempt {
	own, others := serviceExport(east, "cart"), endpointsExport("west", "cart")
	return []attempt{
		changed(own, "own export: give it to another cluster", "ADM-RE-13", changes, func(e *rex) { e.Spec.ClusterID = "west" }),
		changed(own, "own export: make it another Service", "ADM-RE-9", changes, func(e *rex) { e.Spec.Name = "pay" }),
		changed(own, "own export: take off the leader's finalizer", "ADM-RE-8", removals, func(e *rex) { e.Finalizers = nil }),
		changed(own, "own export: add a finalizer", "WK-36", changes, func(e *rex) { e.Finalizers = append(e.Finalizers, "intruder.example/stay") }),
		changed(own, "own export: hide it by a label", "ADM-RE-14", changes, func(e *rex) { e.Labels[v1alpha1.LabelSourceClusterID] = "west" }),
		changed(own, "own export: say that it was merged", "WK-7", statuses, func(e *rex) {
			e.Status.Conditions = []v1alpha1.ResourceCondition{{Type: v1alpha1.ResourceSucceeded, Status: corev1.ConditionTrue, Message: "no"}}
		}),
		changed(others, "another's export: lead its traffic here", "ADM-RE-6", changes, func(e *rex) { e.Spec.Endpoints.Subsets[0].Addresses[0].IP = "10.20.0.66" }),
		changed(others, "another's export: take it over", "ADM-RE-6", changes, func(e *rex) { e.Spec.ClusterID, e.Labels[v1alpha1.LabelSourceClusterID] = east, east }),
		changed(others, "another's export: hide it by a label", "ADM-RE-6", changes, func(e *rex) { e.Labels[v1alpha1.LabelSourceKind] = "Nothing" }),
		changed(others, "another's export: take off the finalizer", "ADM-RE-6", removals, func(e *rex) { e.Finalizers = nil }),
		changed(others, "another's export: keep it for ever", "ADM-RE-6", changes, func(e *rex) { e.Finalizers = append(e.Finalizers, "intruder.example/stay") }),
		changed(others, "another's export: let it be collected with an owner that is gone", "ADM-RE-6", changes, func(e *rex) {
			e.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "00000000-0000-0000-0000-000000000000"}}
		}),
		changed(others, "another's export: delete it", "ADM-RE-6", []way{remove}, func(*rex) {}),
		changed(others, "another's export: say that it failed", "WK-7", statuses, func(e *rex) {
			e.Status.Conditions = []v1alpha1.ResourceCondition{{Type: v1alpha1.ResourceFailure, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonConvergeFailure, Message: "no"}}
		}),
		changed(serviceImport(), "import: say that another cluster failed", "WK-7", statuses, func(i *v1alpha1.ResourceImport) {
			i.Status.ClusterStatuses = append(i.Status.ClusterStatuses, v1alpha1.ResourceImportClusterStatus{ClusterID: "west"})
		}),
		changed(serviceImport(), "import: change it", noRight, changes, func(i *v1alpha1.ResourceImport) { i.Spec.Name = "pay" }),
		changed(serviceImport(), "import: delete it", noRight, []way{remove}, func(*v1alpha1.ResourceImport) {}),
	}
}

func serviceImport() *v1alpha1.ResourceImport {
	return &v1alpha1.ResourceImport{ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: "shop-cart-service"}}
}

func announces() []attempt {
	fresh := func(by, what, answer string, change func(*mca)) attempt {
		return attempt{what: "announce: " + what, by: by, ways: anew, answer: answer, forge: func() client.Object {
			m := announce(by)
			change(m)
			return m
		}}
	}
	own, others := announce(east), announce("west")
	return []attempt{
		fresh(north, "for another cluster", "ADM-MCA-6", func(m *mca) { *m = *announce("harbor") }),
		fresh(north, "into another ClusterSet", "ADM-MCA-8", func(m *mca) { m.ClusterSetID = "navy" }),
		fresh(north, "to another leader", "ADM-MCA-9", func(m *mca) { m.LeaderClusterID = "castle" }),
		fresh(north, "under a second name", "ADM-MCA-10", func(m *mca) { m.Name = "member-announce-from-other" }),
		fresh(dashed, "under an ID that continues another's", "ADM-MCA-11", func(*mca) {}),
		fresh(north, "with a finalizer of its own", "WK-36", func(m *mca) { m.Finalizers = []string{"intruder.example/stay"} }),
		changed(own, "own announce: another ClusterSet", "ADM-MCA-12", changes, func(m *mca) { m.ClusterSetID = "navy" }),
		changed(own, "own announce: another leader", "ADM-MCA-12", changes, func(m *mca) { m.LeaderClusterID = "castle" }),
		changed(own, "own announce: become another cluster", "ADM-MCA-6", changes, func(m *mca) { m.ClusterID = "west" }),
		changed(own, "own announce: take off the leader's finalizer", "WK-36", removals, func(m *mca) { m.Finalizers = nil }),
		changed(own, "own announce: add a finalizer", "WK-36", changes, func(m *mca) { m.Finalizers = append(m.Finalizers, "intruder.example/stay") }),
		changed(others, "another's announce: keep it alive", "ADM-MCA-6", changes, func(m *mca) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationTouch, "2030-01-02T03:04:05Z")
		}),
		changed(others, "another's announce: take it over", "ADM-MCA-12", changes[:3], func(m *mca) { m.ClusterID = east }),
		changed(others, "another's announce: delete it", "ADM-MCA-6", []way{remove}, func(*mca) {}),
	}
}

func publications() []attempt {
	fresh := func(what, answer string, change func(*eps)) attempt {
		return attempt{what: "slice: " + what, by: east, ways: anew, answer: answer, forge: func() client.Object {
			s := slice(east, "fresh")
			change(s)
			return s
		}}
	}
	others := slice("west", "cart")
	return []attempt{
		fresh("labelled as another cluster's", "ADM-ES-3", func(s *eps) { s.Labels[mcsv1beta1.LabelSourceCluster] = "west" }),
		fresh("of a Service of the leader cluster", "ADM-ES-3", func(s *eps) { s.Labels[discoveryv1.LabelServiceName] = "antrea-mc-webhook-service" }),
		fresh("for the proxies of the leader cluster", "ADM-ES-3", func(s *eps) { delete(s.Labels, serviceProxyName) }),
		fresh("under another cluster's name", "ADM-ES-4", func(s *eps) { s.Name = slice("west", "fresh").Name }),
		changed(others, "another's slice: lead its traffic here", "ADM-ES-2", changes, func(s *eps) { s.Endpoints[0].Addresses[0] = "10.20.0.66" }),
		changed(others, "another's slice: take it over", "ADM-ES-2", changes, func(s *eps) { s.Labels[mcsv1beta1.LabelSourceCluster] = east }),
		changed(others, "another's slice: delete it", "ADM-ES-2", []way{remove}, func(*eps) {}),
	}
}

// leases are signs of life, and the Lease by which the leader's replicas elect one.
func leases() []attempt {
	fresh := func(by, what string, of string) attempt {
		return attempt{what: "Lease: " + what, by: by, ways: anew[:2], answer: "ADM-LS-1", forge: func() client.Object { return lease(of) }}
	}
	others, election := lease("west"), &lse{ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: "lockstep-leader"}}
	take := func(l *lse) { l.Spec.HolderIdentity = ptr.To(east) }
	renew := func(l *lse) { l.Spec.RenewTime = ptr.To(metav1.NowMicro()) }
	return []attempt{
		fresh(east, "of a cluster that is not there yet", "harbor"),
		fresh(east, "of one whose ID continues its own", east+"-2"),
		fresh(unbound, "of any cluster", "harbor"),
		fresh(elsewhere, "of any cluster", "harbor"),
		fresh(empty, "of any cluster", "harbor"),
		changed(others, "another's Lease: keep it alive", "ADM-LS-1", changes[:2], renew),
		changed(others, "another's Lease: take it over", "ADM-LS-1", changes[:2], take),
		changed(others, "another's Lease: delete it", noRight, []way{remove}, func(*lse) {}),
		changed(election, "the Lease of the leader's election: take it", "ADM-LS-1", changes[:2], take),
		as(unbound, changed(election, "the Lease of the leader's election: take it", "ADM-LS-1", changes[:2], take)),
		changed(election, "the Lease of the leader's election: patch it", noRight, changes[2:], take),
		changed(election, "the Lease of the leader's election: delete it", noRight, []way{remove}, func(*lse) {}),
	}
}

// strangers are credentials that no cluster is bound to.
func strangers() []attempt {
	one := func(by, what, answer string, object func() client.Object) attempt {
		return attempt{what: what, by: by, ways: anew, answer: answer, forge: object}
	}
	exportOf := func() client.Object { return serviceExport("west", "fresh") }
	announceOf := func() client.Object { return announce("harbor") }
	sliceOf := func() client.Object { return slice("west", "fresh") }
	others := endpointsExport("west", "cart")
	return []attempt{
		one(unbound, "export of any cluster", "WK-32", exportOf),
		one(unbound, "announce of any cluster", "ADM-MCA-6", announceOf),
		one(unbound, "slice of any cluster", "ADM-ES-1", sliceOf),
		as(unbound, changed(others, "any export: delete it", "WK-32", []way{remove}, func(*rex) {})),
		as(unbound, changed(others, "any export: change it", "WK-32", changes, func(e *rex) { e.Spec.Endpoints.Subsets = nil })),
		as(unbound, changed(others, "any export: say that it failed", "WK-7", statuses, func(e *rex) {
			e.Status.Conditions = []v1alpha1.ResourceCondition{{Type: v1alpha1.ResourceFailure, Status: corev1.ConditionFalse, Message: "no"}}
		})),
		one(elsewhere, "export of any cluster", "WK-32", exportOf),
		one(elsewhere, "announce of any cluster", "ADM-MCA-4", announceOf),
		one(elsewhere, "slice of any cluster", "ADM-ES-1", sliceOf),
		as(elsewhere, changed(others, "any export: delete it", "WK-32", []way{remove}, func(*rex) {})),
		one(empty, "export of any cluster", "ADM-RE-5", exportOf),
		one(empty, "export of no cluster", "ADM-RE-5", func() client.Object {
			e := serviceExport("", "fresh")
			e.Name = "of-nobody" // what follows from no ID is no name at all
			return e
		}),
		one(empty, "slice of any cluster", "ADM-ES-1", sliceOf),
		one(deleted, "export of any cluster", nobody, exportOf),
		one(deleted, "announce of any cluster", nobody, announceOf),
	}
}

// everything is what the page lists and the test tries.
func everything() []attempt {
	var all []attempt
	for _, list := range [][]attempt{newExports(), changedExports(), announces(), publications(), leases(), strangers(), rights()} {
		all = append(all, list...)
	}
	return all
}
