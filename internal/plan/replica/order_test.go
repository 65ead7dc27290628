package replica_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// An owner comes before what it owns, whichever of them was created first.
// Objects without a younger owner stay where their creation puts them.
//
// covers: M-1
func TestOwnersComeFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "objects")
		objects := make([]replica.Owned, n)
		for i := range objects {
			// References go to lower numbers, so there is no circle; creation does not
			// follow the numbers, so some owners are younger.
			objects[i] = replica.Owned{Key: fmt.Sprintf("k%02d", rapid.IntRange(0, 99).Draw(t, "name")*n+i), UID: fmt.Sprint(i), Create: int64(rapid.IntRange(1, 6).Draw(t, "create"))}
			for _, owner := range rapid.SliceOfNDistinct(rapid.IntRange(0, n), 0, 2, rapid.ID).Draw(t, "owners") {
				if owner < i || owner == n {
					objects[i].Owners = append(objects[i].Owners, fmt.Sprint(owner)) // n: one that is not here
				}
			}
		}
		order := replica.Delays(objects)
		place := func(o replica.Owned) replica.Place {
			return order.Place(replica.KV{Key: o.Key, Create: o.Create})
		}
		delayed := false
		for _, o := range objects {
			youngest := true
			for _, owner := range objects {
				if !slices.Contains(o.Owners, owner.UID) {
					continue
				}
				if place(owner).Compare(place(o)) >= 0 {
					t.Fatalf("%+v stands at %+v, its owner %+v at %+v", o, place(o), owner, place(owner))
				}
				youngest = youngest && place(owner).Rank < o.Create
			}
			if youngest && place(o) != (replica.Place{Rank: o.Create, Key: o.Key}) {
				t.Fatalf("%+v has no reason to stand at %+v", o, place(o))
			}
			delayed = delayed || !youngest
		}
		if (order.Digest() == "") == delayed {
			t.Fatalf("delayed: %t, digest %q", delayed, order.Digest())
		}
		shuffled := rapid.Permutation(objects).Draw(t, "shuffled")
		if replica.Delays(shuffled).Digest() != order.Digest() {
			t.Fatal("the order depends on that of the list")
		}
	})
}

// A circle of owners, which nobody can put in order, is still one order.
func TestCircleOfOwnersIsBroken(t *testing.T) {
	objects := []replica.Owned{
		{Key: "a", UID: "1", Create: 1, Owners: []string{"2", "1"}},
		{Key: "b", UID: "2", Create: 2, Owners: []string{"1"}},
	}
	one, other := replica.Delays(objects), replica.Delays([]replica.Owned{objects[1], objects[0]})
	if one.Digest() != other.Digest() {
		t.Error("a circle is broken at different places")
	}
}

func seq(places []replica.Place, err error) iter.Seq2[replica.Place, error] {
	return func(yield func(replica.Place, error) bool) {
		for _, p := range places {
			if !yield(p, nil) {
				return
			}
		}
		if err != nil {
			yield(replica.Place{}, err)
		}
	}
}

// Sorted runs read back together are what one index in memory holds.
func TestMergeOfRunsIsOneIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var memory replica.Memory
		runs := make([][]replica.Place, 3)
		for i := range rapid.IntRange(0, 20).Draw(t, "places") {
			p := replica.Place{Rank: int64(rapid.IntRange(0, 3).Draw(t, "rank")), Depth: rapid.IntRange(0, 1).Draw(t, "depth"), Key: fmt.Sprintf("k%02d", i)}
			if err := memory.Add(p); err != nil {
				t.Fatal(err)
			}
			run := rapid.IntRange(0, 2).Draw(t, "run")
			runs[run] = append(runs[run], p)
		}
		var sequences []iter.Seq2[replica.Place, error]
		for _, run := range runs {
			slices.SortFunc(run, replica.Place.Compare)
			sequences = append(sequences, seq(run, nil))
		}
		var want, got []replica.Place
		for p := range memory.After(replica.Place{}) {
			want = append(want, p)
		}
		for p := range replica.Merge(sequences...) {
			got = append(got, p)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		if len(want) > 0 {
			i := rapid.IntRange(0, len(want)-1).Draw(t, "after")
			var rest []replica.Place
			for p := range memory.After(want[i]) {
				rest = append(rest, p)
			}
			if diff := cmp.Diff(append([]replica.Place(nil), want[i+1:]...), rest); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func TestMergeEndsAtAnError(t *testing.T) {
	sentinel := errors.New("disk")
	var got error
	for _, err := range replica.Merge(seq([]replica.Place{{Rank: 1}}, sentinel), seq([]replica.Place{{Rank: 2}}, nil)) {
		got = err
	}
	if !errors.Is(got, sentinel) {
		t.Errorf("got %v", got)
	}
}
