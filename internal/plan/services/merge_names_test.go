package services_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// meeting are two Services whose imports have one name on the wire.
var meeting = []services.Tuple{{Namespace: "prod", Name: "web-api"}, {Namespace: "prod-web", Name: "api"}}

// commonArea is a common area with its imports by name, and who exports what.
type commonArea struct {
	imports  map[string]*v1alpha1.ResourceImport
	exported map[services.Tuple]bool
	wire     bool
}

func (a *commonArea) observed(tuple services.Tuple) services.MergeObserved {
	o := services.MergeObserved{
		Area: area, Tuple: tuple, Wire: a.wire, Peers: map[string]bool{"east": true},
		Import: a.imports[identity.ServiceImportName(tuple)], ImportAside: a.imports[identity.ServiceImportAside(tuple)],
	}
	if a.exported[tuple] {
		re := exportOf("east", facts(0), "http:80")
		re.Name = identity.ServiceExportName("east", tuple)
		re.Spec.Namespace, re.Spec.Name = tuple.Namespace, tuple.Name
		o.Services = []*v1alpha1.ResourceExport{re}
	}
	return o
}

// reconcile is one pass of the leader. It must touch no import of another tuple.
func (a *commonArea) reconcile(t interface{ Fatalf(string, ...any) }, tuple services.Tuple) services.MergePlan {
	plan := services.Merge(a.observed(tuple))
	for _, change := range append([]services.Change[v1alpha1.ResourceImport]{plan.Import}, plan.Strays...) {
		if c := change.Current; c != nil {
			if (services.Tuple{Namespace: c.Spec.Namespace, Name: c.Spec.Name}) != tuple {
				t.Fatalf("%s touches the import of %s/%s", tuple, c.Spec.Namespace, c.Spec.Name)
			}
			delete(a.imports, c.Name)
		}
		if d := change.Desired; d != nil {
			if a.imports[d.Name] != nil {
				t.Fatalf("%s takes %q, which is in use", tuple, d.Name)
			}
			a.imports[d.Name] = d
		}
	}
	return plan
}

func (a *commonArea) of(tuple services.Tuple) (names []string) {
	for name, ri := range a.imports {
		if (services.Tuple{Namespace: ri.Spec.Namespace, Name: ri.Spec.Name}) == tuple {
			names = append(names, name)
		}
	}
	return names
}

// Whatever is exported and withdrawn in whatever order: each exported Service has
// one import, which keeps its name, and nobody takes another's.
func TestWK_6_BothSidesOfACollisionAreImported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := &commonArea{imports: map[string]*v1alpha1.ResourceImport{}, exported: map[services.Tuple]bool{}}
		last := map[services.Tuple]string{}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			tuple := rapid.SampledFrom(meeting).Draw(t, "tuple")
			a.exported[tuple] = !a.exported[tuple]
			for _, each := range rapid.Permutation(meeting).Draw(t, "order") {
				a.reconcile(t, each)
			}
			for _, each := range meeting {
				names := a.of(each)
				if !a.exported[each] {
					if len(names) > 0 {
						t.Fatalf("%s is withdrawn and has %v", each, names)
					}
					delete(last, each)
					continue
				}
				if len(names) != 1 {
					t.Fatalf("%s has %v", each, names)
				}
				if was := last[each]; was != "" && was != names[0] {
					t.Fatalf("%s moved from %q to %q", each, was, names[0])
				}
				last[each] = names[0]
			}
		}
	})
}

// Where nothing meets, names are the wire's.
func TestWK_6_NamesAreTheWiresWhereNothingMeets(t *testing.T) {
	a := &commonArea{imports: map[string]*v1alpha1.ResourceImport{}, exported: map[services.Tuple]bool{meeting[0]: true}}
	a.reconcile(t, meeting[0])
	equal(t, "names", a.of(meeting[0]), []string{"prod-web-api-service"})
}

// While an upstream member is there, the later one is refused and told why; what
// stands aside already stays.
func TestWK_6_WithAnUpstreamMemberTheWireDecides(t *testing.T) {
	a := &commonArea{imports: map[string]*v1alpha1.ResourceImport{}, exported: map[services.Tuple]bool{meeting[0]: true, meeting[1]: true}, wire: true}
	a.reconcile(t, meeting[0])
	plan := a.reconcile(t, meeting[1])
	equal(t, "imports of the second", len(a.of(meeting[1])), 0)
	equal(t, "its fate", fates(plan)[identity.ServiceExportName("east", meeting[1])][:1], []string{"Failure/False/ConvergeFailure"})
	a.wire = false
	a.reconcile(t, meeting[1])
	equal(t, "without upstream it is merged", a.of(meeting[1]), []string{identity.ServiceImportAside(meeting[1])})
	a.wire = true
	equal(t, "nothing is taken away", a.reconcile(t, meeting[1]).Import.IsZero(), true)
}

// A pass that does not see yet what an earlier one put aside can make the import
// twice; the next one leaves one.
func TestWK_6_OfTwoImportsOneStays(t *testing.T) {
	a := &commonArea{imports: map[string]*v1alpha1.ResourceImport{}, exported: map[services.Tuple]bool{meeting[0]: true, meeting[1]: true}}
	a.reconcile(t, meeting[0])
	a.reconcile(t, meeting[1])
	a.exported[meeting[0]] = false
	a.reconcile(t, meeting[0])
	twin := a.imports[identity.ServiceImportAside(meeting[1])].DeepCopy()
	twin.Name = identity.ServiceImportName(meeting[1])
	a.imports[twin.Name] = twin
	a.reconcile(t, meeting[1])
	equal(t, "names", a.of(meeting[1]), []string{twin.Name})
}

// A Service that stands aside leaves the name of the endpoints to the one that does
// not, whoever is merged first after an upstream member has come.
func TestWK_6_EndpointsStandAsideWithTheirService(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		a := &commonArea{imports: map[string]*v1alpha1.ResourceImport{}, exported: map[services.Tuple]bool{meeting[0]: true, meeting[1]: true}}
		a.reconcile(t, meeting[0])
		a.reconcile(t, meeting[1])
		a.wire = true
		ends := map[string]*v1alpha1.ResourceImport{}
		for _, round := range [][]int{order, order} {
			for _, i := range round {
				tuple := meeting[i]
				o := a.observed(tuple)
				o.EndpointsImport, o.EndpointsImportAside = ends[identity.EndpointsImportName(tuple)], ends[identity.EndpointsImportAside(tuple)]
				re := endpointsOf("east", "http:80", "10.0.0.1")
				re.Name = identity.EndpointsExportName("east", tuple)
				re.Spec.Namespace, re.Spec.Name = tuple.Namespace, tuple.Name
				o.Endpoints = []*v1alpha1.ResourceExport{re}
				if d := services.Merge(o).EndpointsImport.Desired; d != nil {
					ends[d.Name] = d
				}
			}
		}
		for name, tuple := range map[string]services.Tuple{
			identity.EndpointsImportName(meeting[0]): meeting[0], identity.EndpointsImportAside(meeting[1]): meeting[1],
		} {
			if ri := ends[name]; ri == nil || ri.Spec.Namespace != tuple.Namespace || ri.Spec.Name != tuple.Name {
				t.Errorf("merged in order %v, %q is not that of %s: %v", order, name, tuple, ends)
			}
		}
	}
}
