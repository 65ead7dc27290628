package spill_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/mirror/spill"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// An index that spills yields what one in memory does, from any place on, twice.
func TestSpilledIsAsInMemory(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		index, memory := &spill.Index{Dir: dir, Bytes: rapid.IntRange(1, 600).Draw(t, "bytes")}, &replica.Memory{}
		defer index.Close()
		places := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) replica.Place {
			return replica.Place{
				Rank: rapid.Int64Range(0, 5).Draw(t, "rank"), Depth: rapid.IntRange(0, 2).Draw(t, "depth"),
				Key: string(rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "key")),
			}
		}), 0, 40, func(p replica.Place) string { return p.Key }).Draw(t, "places")
		for _, p := range places {
			if err := index.Add(p); err != nil {
				t.Fatal(err)
			}
			_ = memory.Add(p)
		}
		for _, after := range append(places, replica.Place{}, replica.Place{Rank: 3}) {
			if diff := cmp.Diff(all(t, memory, after), all(t, index, after)); diff != "" {
				t.Fatalf("behind %v: %s", after, diff)
			}
		}
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%d files are left (%v)", len(left), err)
	}
}

func all(t *rapid.T, index replica.Index, after replica.Place) (places []replica.Place) {
	for p, err := range index.After(after) {
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, p)
	}
	return places
}

func TestNoFolder(t *testing.T) {
	index := &spill.Index{Dir: "/nowhere", Bytes: 1}
	if err := index.Add(replica.Place{Key: "a"}); err == nil {
		t.Error("it was put into a folder that is not there")
	}
}
