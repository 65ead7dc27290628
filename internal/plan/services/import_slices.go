package services

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// localSlices is what becomes of the slices of an import in this cluster. Each
// slice holds endpoints of one source cluster:
//
//	source            content                                    numbered by
//	another cluster   its slices in the common area, one to one  the common area
//	this cluster      local endpoints of the exported Service    Pack
//	empty             the wire's merged Endpoints, which do not  Pack
//	                  say where an address is; no source label
type localSlices struct {
	writes, deletes []Change[discoveryv1.EndpointSlice]
	refusals        []Refusal
	// sources have a slice here; held are kept by the hold.
	sources, held map[string]bool
	// waits: some wait until the leader can be seen.
	waits bool
}

func (s localSlices) changes() []Change[discoveryv1.EndpointSlice] {
	return append(s.writes, s.deletes...)
}

func (i importer) slices() localSlices {
	out := localSlices{sources: map[string]bool{}, held: map[string]bool{}}
	for _, source := range i.sources() {
		local, want := i.slicesOf(source), i.wantedFrom(source)
		if i.loses(source) {
			want = i.lose(source, want, local)
			out.waits = out.waits || i.Loss.Blind
		}
		// This cluster knows its own endpoints better than the common area does.
		trusted := source == i.Cluster && i.Exported
		if i.Hold.holds(source) && !trusted && holdEndpoints(want, local) {
			out.held[source] = true
		}
		i.settle(source, local, want, &out)
	}
	for _, source := range i.contributors() {
		if i.heldBack() && i.Hold.holds(source) && !i.accepts(source) {
			out.held[source] = true
		}
	}
	return out
}

// sources are the clusters that have, or may get, slices here, sorted.
func (i importer) sources() []string {
	set := i.remoteClusters()
	if i.Wire {
		set[""] = true
	}
	if i.Exported {
		set[i.Cluster] = true
	}
	for s := range i.ourSlices() {
		set[sourceOf(s)] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// accepts: endpoints of a cluster whose Service export was refused are not
// served (WK-19).
func (i importer) accepts(cluster string) bool {
	return i.accepted == nil || slices.Contains(i.accepted, cluster)
}

func (i importer) slicesOf(source string) []*discoveryv1.EndpointSlice {
	var local []*discoveryv1.EndpointSlice
	for s := range i.ourSlices() {
		if sourceOf(s) == source {
			local = append(local, s)
		}
	}
	return local
}

// wantedFrom is the content of a source's slices here, by name.
func (i importer) wantedFrom(source string) map[string]*Group {
	switch {
	case source == i.Cluster && i.Exported:
		return i.packed(source, i.ownGroups())
	case source == i.Cluster:
		return map[string]*Group{}
	case source == "":
		return i.packed(source, i.wireGroups())
	case i.Wire || !i.accepts(source):
		return map[string]*Group{}
	}
	return i.mirrored(source)
}

// mirrored are a cluster's slices in the common area, without ports that lost
// a conflict and without families this import has not. Name and labels of such
// a slice have to agree: admission binds the one, readers go by the other.
func (i importer) mirrored(source string) map[string]*Group {
	want := map[string]*Group{}
	for k := range i.Remote {
		remote := &i.Remote[k]
		if sourceOf(remote) != source || !belongs(remote, i.Tuple) || !slices.Contains(i.families, familyOf(remote.AddressType)) {
			continue
		}
		n, ok := identity.SliceNumber(remote.Name, source, i.Tuple)
		if !ok {
			continue
		}
		group := Group{AddressType: remote.AddressType, Ports: remote.Ports, Endpoints: withoutBonds(remote.Endpoints)}.without(i.refused(source))
		want[identity.ImportedSliceName(i.name, source, n)] = &group
	}
	return want
}

// refused are the names of ports for which a cluster gets no traffic.
func (i importer) refused(cluster string) []string {
	return slices.Concat(i.facts.RefusedPorts[cluster], i.withheld)
}

// withoutBonds drops what points at objects of another cluster. Our exporter
// has done so already; then nothing is copied.
func withoutBonds(endpoints []discoveryv1.Endpoint) []discoveryv1.Endpoint {
	bound := func(e discoveryv1.Endpoint) bool {
		return e.NodeName != nil || e.TargetRef != nil || e.Hints != nil || e.Conditions.Ready == nil
	}
	if !slices.ContainsFunc(endpoints, bound) {
		return endpoints
	}
	free := make([]discoveryv1.Endpoint, 0, len(endpoints))
	for _, e := range endpoints {
		free = append(free, travelling(e))
	}
	return free
}

// settle turns the wanted slices of one source into changes.
func (i importer) settle(source string, local []*discoveryv1.EndpointSlice, want map[string]*Group, out *localSlices) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		current := i.sliceNamed(name)
		if current != nil && !(i.ownsSlice(current) && sourceOf(current) == source) {
			out.refusals = append(out.refusals, refuseSlice(current, source))
			continue
		}
		out.sources[source] = true
		if current != nil && current.AddressType != want[name].AddressType {
			// The type cannot be changed; the next plan makes the slice anew.
			out.deletes = append(out.deletes, Change[discoveryv1.EndpointSlice]{Current: current})
			continue
		}
		if c := i.sliceChange(source, name, current, want[name]); !c.IsZero() {
			out.writes = append(out.writes, c)
		}
	}
	for _, s := range local {
		if want[s.Name] == nil && s.DeletionTimestamp == nil {
			out.deletes = append(out.deletes, Change[discoveryv1.EndpointSlice]{Current: s})
		}
	}
}

func (i importer) sliceNamed(name string) *discoveryv1.EndpointSlice {
	k := slices.IndexFunc(i.Slices, func(s discoveryv1.EndpointSlice) bool { return s.Name == name })
	if k < 0 {
		return nil
	}
	return &i.Slices[k]
}

func (i importer) sliceChange(source, name string, current *discoveryv1.EndpointSlice, want *Group) Change[discoveryv1.EndpointSlice] {
	desired := discoveryv1.EndpointSlice{AddressType: want.AddressType}
	if current != nil {
		desired = *current
	}
	desired.Name, desired.Ports, desired.Endpoints = name, sortedPorts(want.Ports), want.Endpoints
	i.dressSlice(&desired, source)
	if current != nil && sameSlice(current, &desired) {
		return Change[discoveryv1.EndpointSlice]{}
	}
	return Change[discoveryv1.EndpointSlice]{Current: current, Desired: desired.DeepCopy()}
}

// sameSlice compares what we write; see sameEndpoint for why not everything.
func sameSlice(a, b *discoveryv1.EndpointSlice) bool {
	return maps.Equal(a.Labels, b.Labels) &&
		apiequality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences) &&
		portsKey(a.Ports) == portsKey(b.Ports) &&
		slices.EqualFunc(a.Endpoints, b.Endpoints, func(e, f discoveryv1.Endpoint) bool { return sameEndpoint(&e, &f) })
}

// dressSlice marks a slice: whose endpoints, of which Service, and that kube-proxy
// should serve them for the Service that stands for the import. That Service
// owns the slice, but is no controller of it.
func (i importer) dressSlice(s *discoveryv1.EndpointSlice, source string) {
	s.Namespace = i.Tuple.Namespace
	labels := map[string]string{
		discoveryv1.LabelServiceName: i.name,
		mcsv1beta1.LabelServiceName:  i.Tuple.Name,
		discoveryv1.LabelManagedBy:   v1alpha1.SliceManager,
		v1alpha1.LabelClusterSet:     i.ClusterSet,
	}
	if source != "" {
		labels[mcsv1beta1.LabelSourceCluster] = source
	}
	setLabels(s, labels)
	if i.Service != nil && i.Service.UID != "" {
		s.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Service", Name: i.name, UID: i.Service.UID,
		}}
	}
}
