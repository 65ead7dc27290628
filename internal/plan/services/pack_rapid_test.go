package services_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// place is an endpoint with all that Pack may not change about it.
type place struct {
	t       discoveryv1.AddressType
	port    string
	address string
}

// wanted is what a slow twin of Pack keeps: which endpoints there are, and
// whether each is ready.
type wanted map[place]bool

func (w wanted) groups() []services.Group {
	var groups []services.Group
	for p, ready := range w {
		e := endpoint(p.address)
		e.Conditions.Ready = new(ready)
		groups = append(groups, services.Group{AddressType: p.t, Ports: portsNamed(p.port), Endpoints: []discoveryv1.Endpoint{e}})
	}
	return groups
}

// held reads back what slices hold; it fails on an endpoint that is there twice.
func held(t *rapid.T, list []discoveryv1.EndpointSlice) wanted {
	w := wanted{}
	for _, s := range list {
		for _, e := range s.Endpoints {
			p := place{s.AddressType, *s.Ports[0].Name, e.Addresses[0]}
			if _, twice := w[p]; twice {
				t.Fatalf("%v is in two slices", p)
			}
			w[p] = *e.Conditions.Ready
		}
	}
	return w
}

// differing counts endpoints that came, went, or changed.
func differing(a, b wanted) int {
	n := 0
	for p, ready := range a {
		if now, ok := b[p]; !ok || now != ready {
			n++
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			n++
		}
	}
	return n
}

func genWanted() *rapid.Generator[wanted] {
	return rapid.Custom(func(t *rapid.T) wanted {
		w := wanted{}
		for range rapid.IntRange(0, 14).Draw(t, "n") {
			p := place{discoveryv1.AddressTypeIPv4, rapid.SampledFrom([]string{"http", "http", "grpc"}).Draw(t, "port"), ""}
			if rapid.IntRange(0, 4).Draw(t, "v6") == 0 {
				p.t = discoveryv1.AddressTypeIPv6
			}
			p.address = fmt.Sprintf("%s-%d", p.t, rapid.IntRange(0, 20).Draw(t, "address"))
			w[p] = rapid.Bool().Draw(t, "ready")
		}
		return w
	})
}

// applied is the common area after changes.
func applied(list []discoveryv1.EndpointSlice, changes []services.Change[discoveryv1.EndpointSlice]) []discoveryv1.EndpointSlice {
	byName := map[string]discoveryv1.EndpointSlice{}
	for _, s := range list {
		byName[s.Name] = s
	}
	for _, c := range changes {
		if c.Desired == nil {
			delete(byName, c.Current.Name)
			continue
		}
		byName[c.Desired.Name] = *c.Desired.DeepCopy()
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b discoveryv1.EndpointSlice) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// A history of wanted endpoints is packed step by step. After each step:
// exactly the wanted endpoints are there, once; no slice is too full or mixed;
// no more slices were written than endpoints changed; the next plan is empty;
// the order of what was observed did not matter.
func TestWK_45_PackProperties(t *testing.T) {
	const limit = 3
	layout := plain(limit, discoveryv1.AddressTypeIPv4)
	rapid.Check(t, func(t *rapid.T) {
		list := applied(nil, services.Pack(nil, nil, layout)) // the placeholder
		before := wanted{}
		for _, want := range rapid.SliceOfN(genWanted(), 1, 5).Draw(t, "history") {
			groups := want.groups()
			changes := services.Pack(list, groups, layout)
			shuffled := services.Pack(rapid.Permutation(list).Draw(t, "slices"), rapid.Permutation(groups).Draw(t, "groups"), layout)
			equal(t, "the order mattered", printed(shuffled), printed(changes))
			if n, most := written(changes), differing(before, want); n > most {
				t.Fatalf("%d slices written for %d changed endpoints: %v", n, most, printed(changes))
			}
			list = applied(list, changes)
			equal(t, "other endpoints than wanted", held(t, list), want)
			checkShape(t, list, limit)
			if again := services.Pack(list, groups, layout); len(again) > 0 {
				t.Fatalf("a second plan changes %v", printed(again))
			}
			before = want
		}
	})
}

// written counts changes, but not the end of an empty placeholder: no reader
// loses or gains by that.
func written(changes []services.Change[discoveryv1.EndpointSlice]) int {
	n := 0
	for _, c := range changes {
		if c.Desired != nil || len(c.Current.Endpoints) > 0 {
			n++
		}
	}
	return n
}

func checkShape(t *rapid.T, list []discoveryv1.EndpointSlice, limit int) {
	if len(list) == 0 {
		t.Fatal("not even a placeholder is left")
	}
	for _, s := range list {
		if len(s.Endpoints) > limit {
			t.Fatalf("%s holds %v", s.Name, addressesOf(&s))
		}
		if len(s.Endpoints) == 0 && len(list) > 1 {
			t.Fatalf("%s is empty beside others", s.Name)
		}
		for _, a := range addressesOf(&s) {
			if string(s.AddressType) != a[:4] {
				t.Fatalf("%s of type %s holds %s", s.Name, s.AddressType, a)
			}
		}
	}
}

// What others left behind in any state is put right in one step.
func TestPackPutsAnyStateRight(t *testing.T) {
	layout := plain(3, "")
	rapid.Check(t, func(t *rapid.T) {
		list := applied(nil, services.Pack(nil, genWanted().Draw(t, "a").groups(), plain(8, "")))
		more := services.Pack(nil, genWanted().Draw(t, "b").groups(), plain(2, ""))
		for i, c := range more {
			s := *c.Desired
			s.Name = fmt.Sprintf("s.%d", 100+i) // beside the others, endpoints of which it may hold as well
			list = append(list, s)
		}
		want := genWanted().Draw(t, "want")
		list = applied(list, services.Pack(list, want.groups(), layout))
		equal(t, "other endpoints than wanted", held(t, list), want)
		for _, s := range list {
			if len(s.Endpoints) > 3 {
				t.Fatalf("%s holds %v", s.Name, addressesOf(&s))
			}
		}
	})
}
