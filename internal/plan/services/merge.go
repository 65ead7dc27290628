package services

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// LabelKeeper marks a slice of the common area that the leader keeps for an
// upstream member, made from that member's wire Endpoints. The member takes the
// slice over, and drops the mark, once it speaks our exchange.
const LabelKeeper = "multicluster.lockstep.dev/keeper"

// KeeperLeader is the value of LabelKeeper.
const KeeperLeader = "leader"

// MergeObserved is everything that the merged import of one Service may depend
// on.
type MergeObserved struct {
	// Area is the namespace of the common area.
	Area  string
	Tuple Tuple
	// Now dates conditions whose status changes; nothing else depends on it.
	Now metav1.Time
	// Services and Endpoints are the exports of the tuple by kind, in any
	// order, those being deleted included.
	Services, Endpoints []*v1alpha1.ResourceExport
	// Import and EndpointsImport are what is at the computed names, whatever
	// tuple they carry.
	Import, EndpointsImport *v1alpha1.ResourceImport
	// ImportAside and EndpointsImportAside are what is at the names that imports
	// have when those stand for another tuple.
	ImportAside, EndpointsImportAside *v1alpha1.ResourceImport
	// Peers are the cluster IDs that speak our exchange.
	Peers map[string]bool
	// Wire: an upstream member needs the merged wire Endpoints.
	Wire bool
	// Slices of the tuple in the common area. Those of own peers are left alone.
	Slices []discoveryv1.EndpointSlice
}

// MergePlan is what the leader should make of the exports. It is applied in
// the order of its fields: a finalizer may only go when the imports are settled.
type MergePlan struct {
	Import, EndpointsImport Change[v1alpha1.ResourceImport]
	// Strays are imports of this tuple at a second name.
	Strays []Change[v1alpha1.ResourceImport]
	// Slices stand for the wire Endpoints of upstream members.
	Slices []Change[discoveryv1.EndpointSlice]
	// Statuses are exports whose status differs, sorted by name.
	Statuses []Change[v1alpha1.ResourceExport]
	// Finalizers are exports being deleted, without both finalizer spellings.
	Finalizers []Change[v1alpha1.ResourceExport]
}

// Merge decides what all exports of one Service come to. The order in which
// exports arrive does not matter, and each of them can fail without the others.
func Merge(o MergeObserved) MergePlan {
	o, names := o.settleNames()
	exports := o.sortOut()
	m := merger{MergeObserved: o, names: names, exports: exports, outcome: resolve(exports.contributions)}
	return MergePlan{
		Import:          m.serviceImport(),
		EndpointsImport: m.endpointsImport(),
		Strays:          names.strays,
		Slices:          m.keptSlices(),
		Statuses:        m.statuses(),
		Finalizers:      o.finalizers(),
	}
}

// merger is what the parts of a plan are read from.
type merger struct {
	MergeObserved
	names
	exports
	outcome
}
