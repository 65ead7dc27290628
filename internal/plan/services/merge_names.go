package services

import (
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// names are those under which the imports of a tuple stand, or will.
type names struct {
	serviceName, endpointsName string
	strays                     []Change[v1alpha1.ResourceImport]
}

// settleNames decides which of its two names each import of this tuple has, and
// makes the import there the one that the plan is about (WK-6). a-b/c and a/b-c meet
// in the wire's name; the later one then stands aside, under a name with a hash, and
// both work: peers of ours know an import by its tuple.
func (o MergeObserved) settleNames() (MergeObserved, names) {
	var n names
	usual, aside := identity.ServiceImportName(o.Tuple), identity.ServiceImportAside(o.Tuple)
	o.Import, n.serviceName = o.stands(v1alpha1.KindServiceImport, o.Import, o.ImportAside, usual, aside, &n)
	away := n.serviceName == aside
	usual, aside = identity.EndpointsImportName(o.Tuple), identity.EndpointsImportAside(o.Tuple)
	if away && o.putAside() {
		o.EndpointsImport, n.endpointsName = o.EndpointsImportAside, aside
		return o, n
	}
	o.EndpointsImport, n.endpointsName = o.stands(v1alpha1.KindEndpoints, o.EndpointsImport, o.EndpointsImportAside, usual, aside, &n)
	return o, n
}

// putAside tells whether endpoints, whose Service stands aside, are to do so too. They
// do not take the name of those of the Service that does not, whoever is merged
// first.
func (o MergeObserved) putAside() bool {
	mine := func(ri *v1alpha1.ResourceImport) bool { return ri != nil && o.matches(ri, v1alpha1.KindEndpoints) }
	return !mine(o.EndpointsImport) && (o.EndpointsImportAside == nil || mine(o.EndpointsImportAside))
}

// stands finds the import of a kind. It stays where it is, also when its usual
// name becomes free: to move it would take it away from every cluster for a while.
// An import at both names, of two passes of which one had an old view, stays at
// the usual one. While an upstream member is there, nothing new is put aside: the
// later one is refused, as on the wire (LDR-RE-3).
func (o MergeObserved) stands(kind string, at, beside *v1alpha1.ResourceImport, usual, aside string, n *names) (current *v1alpha1.ResourceImport, name string) {
	mine := func(ri *v1alpha1.ResourceImport) bool { return ri != nil && o.matches(ri, kind) }
	switch {
	case mine(at):
		if mine(beside) {
			n.strays = append(n.strays, withdrawImport(beside))
		}
		return at, usual
	case mine(beside):
		return beside, aside
	case at == nil || o.Wire || beside != nil:
		return at, usual
	}
	return nil, aside
}
