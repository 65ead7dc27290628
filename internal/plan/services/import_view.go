package services

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// importer is what was observed and what the import means for this cluster.
type importer struct {
	ImportObserved
	name string // of the Service that stands for the import

	// The rest is empty without a usable import.
	spec     mcsv1beta1.ServiceImportSpec
	families []corev1.IPFamily // of the spec, as far as this cluster has them
	facts    v1alpha1.MergeFacts
	// accepted clusters by the leader; nil when it does not say (upstream).
	accepted []string
	// withheld ports of the import contradict what a hold keeps.
	withheld []string
}

func newImporter(o ImportObserved) importer {
	i := importer{ImportObserved: o, name: identity.ImportedServiceName(o.Tuple.Name)}
	i.Slices = sortedByName(o.Slices)
	if !i.usable() {
		return i
	}
	i.spec = importedSpec(o.Import.Spec.ServiceImport.Spec)
	if i.ServiceImport != nil && i.ownsServiceImport() && i.heldBack() {
		i.spec, i.withheld = heldSpec(i.ServiceImport.Spec, i.spec)
	}
	i.families = i.spec.IPFamilies
	if len(o.Families) > 0 {
		i.families = intersect(i.families, o.Families)
	}
	i.facts = mergeFacts(o.Import)
	for _, c := range o.Import.Spec.ServiceImport.Status.Clusters {
		i.accepted = append(i.accepted, c.Cluster)
	}
	return i
}

// sortedByName makes plans independent of the order slices were listed in.
func sortedByName(list []discoveryv1.EndpointSlice) []discoveryv1.EndpointSlice {
	byName := func(a, b discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) }
	if slices.IsSortedFunc(list, byName) {
		return list
	}
	return slices.SortedFunc(slices.Values(list), byName)
}

// importedSpec fills in what upstream's leader leaves out: its imports are IPv4
// and have no other property than ports.
func importedSpec(spec mcsv1beta1.ServiceImportSpec) mcsv1beta1.ServiceImportSpec {
	spec.Type = cmp.Or(spec.Type, mcsv1beta1.ClusterSetIP)
	spec.IPs = nil
	spec.IPFamilies = knownFamilies(spec.IPFamilies)
	if spec.Ports == nil {
		spec.Ports = []mcsv1beta1.ServicePort{} // required, also when empty
	}
	return spec
}

// usable tells whether the import has a payload and this cluster among its
// targets (WK-23).
func (i importer) usable() bool { return i.Import != nil && !i.broken() && i.targeted() }

func (i importer) broken() bool { return i.Import != nil && i.Import.Spec.ServiceImport == nil }

func (i importer) targeted() bool {
	targets := i.Import.Spec.ClusterIDs
	return len(targets) == 0 || slices.Contains(targets, i.Cluster)
}

// fate of the import in this cluster.
type fate int

const (
	withdrawn fate = iota // nothing of ours may stay
	frozen                // what is here stays as it is
	wanted
)

// fate decides between the import and what was made from it:
//
//   - A usable import is wanted.
//   - One without payload says nothing: a bad write loses nothing.
//   - A hold keeps what its clusters have not released.
//   - An import may be missing because the leader has yet to merge it, after it
//     was restored or restarted. Slices of other clusters in the common area
//     prove that they still export, so we keep what we have.
func (i importer) fate() fate {
	switch {
	case i.usable():
		return wanted
	case !i.hasOurs():
		return withdrawn
	case i.broken(), i.heldBack():
		return frozen
	case i.Import == nil && i.leaderLags():
		return frozen
	}
	return withdrawn
}

func (i importer) leaderLags() bool {
	if i.ServiceImport == nil || !i.ownsServiceImport() {
		return false
	}
	for cluster := range i.remoteClusters() {
		if cluster != i.Cluster {
			return true
		}
	}
	return false
}

// remoteClusters have slices of the tuple in the common area.
func (i importer) remoteClusters() map[string]bool {
	clusters := map[string]bool{}
	if i.Wire {
		return clusters
	}
	for k := range i.Remote {
		if belongs(&i.Remote[k], i.Tuple) {
			clusters[sourceOf(&i.Remote[k])] = true
		}
	}
	return clusters
}

// sourceOf is the cluster a slice's endpoints are in; empty when nobody told.
func sourceOf(s *discoveryv1.EndpointSlice) string { return s.Labels[mcsv1beta1.LabelSourceCluster] }

// ourSlices are the local slices we made for the tuple.
func (i importer) ourSlices() iter.Seq[*discoveryv1.EndpointSlice] {
	return func(yield func(*discoveryv1.EndpointSlice) bool) {
		for k := range i.Slices {
			if i.ownsSlice(&i.Slices[k]) && !yield(&i.Slices[k]) {
				return
			}
		}
	}
}

// contributors are the clusters that what is here came from, sorted. Without a
// trace of any, it came from one that nobody told.
func (i importer) contributors() []string {
	clusters := map[string]bool{}
	for s := range i.ourSlices() {
		clusters[sourceOf(s)] = true
	}
	if i.ServiceImport != nil && i.ownsServiceImport() {
		for _, c := range i.ServiceImport.Status.Clusters {
			clusters[c.Cluster] = true
		}
	}
	if len(clusters) == 0 {
		return []string{""}
	}
	return slices.Sorted(maps.Keys(clusters))
}
