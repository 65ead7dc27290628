package services

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// ImportObserved is everything that what a member creates for one import may
// depend on.
type ImportObserved struct {
	// Cluster is the ID of this member; ClusterSet the name of its ClusterSet.
	Cluster, ClusterSet string
	Tuple               Tuple
	// NamespaceActive is false when the namespace is missing or terminating:
	// nothing can be created there, and nothing has to be removed.
	NamespaceActive bool
	// Families this cluster supports; empty means unknown and restricts nothing.
	Families []corev1.IPFamily
	// Wire: the leader is upstream's, endpoints come from EndpointsImport and
	// Remote is not looked at.
	Wire bool
	// Import and EndpointsImport are the ResourceImports of this tuple.
	Import, EndpointsImport *v1alpha1.ResourceImport
	// Remote are the slices of the tuple in the common area.
	Remote []discoveryv1.EndpointSlice
	// Exported: this cluster has a ServiceExport for the tuple that is not
	// being deleted, and is among the clusters the leader accepted.
	Exported bool
	// OwnService and OwnSlices are the exported Service here and its slices.
	OwnService *corev1.Service
	OwnSlices  []discoveryv1.EndpointSlice
	// Service is whatever is at the imported name.
	Service *corev1.Service
	// Endpoints is whatever is at the imported name. Upstream's importer fills
	// such an object, and Kubernetes mirrors it into slices until it is gone.
	Endpoints *corev1.Endpoints
	// ServiceImport is whatever is at the tuple's name.
	ServiceImport *mcsv1beta1.ServiceImport
	// Slices are the local ones labelled for the imported Service, or with the
	// name of a slice of ours for it.
	Slices []discoveryv1.EndpointSlice
	Hold   Hold
	Loss   Loss
}

// Hold keeps what is here while the common area cannot be trusted to be
// complete, because the leader was restored. Clusters that proved to have
// published everything again are Released.
type Hold struct {
	Active   bool
	Released map[string]bool
}

// Protects tells whether what a cluster contributed may not be withdrawn, for
// plans of other objects.
func (h Hold) Protects(cluster string) bool { return h.holds(cluster) }

// holds tells whether what this cluster contributed may not be withdrawn.
func (h Hold) holds(cluster string) bool { return h.Active && !h.Released[cluster] }

// ImportPlan is what a member should create from an import. It is applied in
// the order of its fields; in Slices writes come before deletes.
type ImportPlan struct {
	Service       Change[corev1.Service]
	ServiceImport Change[mcsv1beta1.ServiceImport] // spec and metadata
	// ServiceImportStatus is the wanted status, its conditions without times:
	// MergeServiceImportStatus puts it there. Nil when no ServiceImport is ours.
	ServiceImportStatus *mcsv1beta1.ServiceImportStatus
	Slices              []Change[discoveryv1.EndpointSlice]
	// Endpoints is only ever a delete of what upstream's importer left.
	Endpoints Change[corev1.Endpoints]
	// NeedsIP: the rest of the plan depends on the Service that has to be
	// created, replaced, or given its IP. Apply this much and plan again.
	NeedsIP bool
	// Refusals are objects of other owners in the way.
	Refusals []Refusal
	// Held are the clusters whose withdrawal is held back, sorted. The empty
	// ID stands for contributions whose cluster nobody told.
	Held []string
	// Blind: what the leader said of lost clusters waits until it can be seen.
	Blind bool
}

// Import decides what this member makes of one import.
func Import(o ImportObserved) ImportPlan {
	if !o.NamespaceActive { // MEM-RI-5: no namespace is created, none is fought over
		return ImportPlan{}
	}
	i := newImporter(o)
	switch i.fate() {
	case wanted:
		return i.create()
	case frozen:
		return i.freeze()
	}
	return i.withdraw()
}

// create wants the Service first, because everything else hangs on it: its IP
// is the import's, its UID owns the slices.
func (i importer) create() ImportPlan {
	if i.Service != nil && !i.ownsService() {
		return i.blocked()
	}
	if len(i.families) == 0 {
		return i.unsupported()
	}
	plan := ImportPlan{Service: i.service()}
	if plan.NeedsIP = i.waitsForService(plan.Service); plan.NeedsIP {
		plan.ServiceImportStatus = i.pending()
		return plan
	}
	local := i.slices()
	plan.Slices, plan.Refusals = local.changes(), local.refusals
	plan.Held, plan.Blind = slices.Sorted(maps.Keys(local.held)), local.waits
	plan.Endpoints = i.leftEndpoints()
	if i.ServiceImport != nil && !i.ownsServiceImport() {
		plan.Refusals = append(plan.Refusals, i.refuseServiceImport())
		return plan
	}
	plan.ServiceImport = i.serviceImport()
	plan.ServiceImportStatus = i.status(local, ready())
	return plan
}

// blocked leaves nothing of ours beside a Service of another owner: slices
// would send its traffic to other clusters, and the ServiceImport would carry
// an IP that leads elsewhere.
func (i importer) blocked() ImportPlan {
	plan := i.withdraw()
	if i.heldBack() {
		plan = i.freeze()
	}
	plan.Refusals = append(plan.Refusals, i.refuseService())
	return plan
}

// unsupported keeps the ServiceImport, which says why, and nothing behind it.
func (i importer) unsupported() ImportPlan {
	if i.heldBack() {
		return i.freeze()
	}
	plan := i.withdraw()
	plan.ServiceImport = Change[mcsv1beta1.ServiceImport]{}
	if i.ServiceImport != nil && !i.ownsServiceImport() {
		plan.Refusals = append(plan.Refusals, i.refuseServiceImport())
		return plan
	}
	plan.ServiceImport = i.serviceImport()
	plan.ServiceImportStatus = i.status(localSlices{}, familyNotSupported(i.spec.IPFamilies, i.Families))
	return plan
}

// withdraw removes everything of ours (MEM-RI-4), and what upstream's importer
// made: the tuple is observed, nothing has to be remembered of the import.
func (i importer) withdraw() ImportPlan {
	var plan ImportPlan
	if i.Service != nil && i.ownsService() && i.Service.DeletionTimestamp == nil {
		plan.Service = diff(i.Service, nil)
	}
	if i.ServiceImport != nil && i.ownsServiceImport() && i.ServiceImport.DeletionTimestamp == nil {
		plan.ServiceImport = diff(i.ServiceImport, nil)
	}
	for s := range i.ourSlices() {
		if s.DeletionTimestamp == nil {
			plan.Slices = append(plan.Slices, Change[discoveryv1.EndpointSlice]{Current: s})
		}
	}
	plan.Endpoints = i.leftEndpoints()
	return plan
}
