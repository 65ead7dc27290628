package replica_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/stored"
)

// Each key's turn comes once, after all of its owners unless they own one
// another; and whoever begins anew behind a safe place misses nobody.
func TestLineage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "objects")
		kin := make([]stored.Kin, n)
		for i := range kin {
			kin[i].UID = fmt.Sprint(i)
			for _, owner := range rapid.SliceOfN(rapid.IntRange(0, n+1), 0, 2).Draw(t, "owners") { // beyond n: it never comes
				kin[i].Owners = append(kin[i].Owners, stored.Identity{UID: fmt.Sprint(owner)})
			}
		}
		place := func(i int) replica.Place { return replica.Place{Rank: int64(i/2 + 1), Key: fmt.Sprintf("k%02d", i)} }
		var lineage replica.Lineage
		var order []replica.Ready
		for i := range kin {
			order = append(order, lineage.Arrive(place(i), kin[i])...)
		}
		order = append(order, lineage.Rest()...)

		at := map[string]int{}
		for i, ready := range order {
			if _, again := at[ready.Key]; again {
				t.Fatalf("%s comes twice", ready.Key)
			}
			at[ready.Key] = i
			for j := range kin {
				if _, written := at[place(j).Key]; !written && place(j).Compare(ready.Safe) <= 0 {
					t.Fatalf("after %s a copy would go on behind %v, and %v has not been written", ready.Key, ready.Safe, place(j))
				}
			}
		}
		if len(at) != n {
			t.Fatalf("%d of %d came", len(at), n)
		}
		for i := range kin {
			if hopeless(kin, i) {
				continue // a circle, or below one, or an owner that never comes
			}
			for _, owner := range kin[i].Owners {
				for j := range kin {
					if kin[j].UID == owner.UID && j != i && at[place(j).Key] > at[place(i).Key] {
						t.Fatalf("%d comes before its owner %d: %v", i, j, order)
					}
				}
			}
		}
		if last := order[len(order)-1].Safe; last != place(n-1) {
			t.Fatalf("all have been written, and a copy would go on behind %v", last)
		}
	})
}

// Whoever waits for an owner that never comes is written at the end; a copy that is
// interrupted there goes on where it was.
func TestRestGoesOnWhereItWas(t *testing.T) {
	var lineage replica.Lineage
	for i := range 5 {
		kin := stored.Kin{Owners: []stored.Identity{{UID: "there already"}}}
		kin.UID = fmt.Sprint(i)
		if ready := lineage.Arrive(replica.Place{Rank: int64(i + 1), Key: "k"}, kin); len(ready) != 0 {
			t.Fatalf("%d does not wait: %v", i, ready)
		}
	}
	var safe []int64
	for _, ready := range lineage.Rest() {
		safe = append(safe, ready.Safe.Rank)
	}
	if want := []int64{2, 3, 4, 5, 5}; !slices.Equal(safe, want) {
		t.Errorf("a copy would go on at ranks %v, want %v", safe, want)
	}
}

// hopeless: an object that waits to the end, told the slow way.
func hopeless(kin []stored.Kin, i int) bool {
	done := map[string]bool{}
	for range kin {
		for _, k := range kin {
			if !slices.ContainsFunc(k.Owners, func(o stored.Identity) bool { return o.UID != k.UID && !done[o.UID] }) {
				done[k.UID] = true
			}
		}
	}
	return !done[kin[i].UID]
}
