package replica_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/stored"
)

func state(pairs ...string) map[string]replica.KV {
	held := map[string]replica.KV{}
	for i := 0; i < len(pairs); i += 2 {
		held[pairs[i]] = replica.KV{Key: pairs[i], Value: []byte(pairs[i+1]), Mod: int64(i + 1)}
	}
	return held
}

// covers: D-11, D-13
func TestCompare(t *testing.T) {
	const (
		machine = "/registry/cluster.x-k8s.io/machines/cpaas-system/"
		secret  = "/registry/secrets/shop/"
		bundle  = "/registry/secrets/cpaas-system/bundle"
	)
	rules := selection.Rules{SyncEqual: map[string]bool{bundle: true}}
	global := `{"metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"global"}}}`
	primary := state(
		machine+"gone", `{"metadata":{}}`,
		machine+"bomb", `{"metadata":{"uid":"1"}}`,
		machine+"ours", global, // local on the primary, so nothing is said about it
		secret+"same", "x",
		secret+"enc", "k8s:enc:aescbc:v1:k:1",
		bundle, "{}",
		"/registry/leases/shop/a", "1",
		"compact_rev_key", "1",
	)
	standby := state(
		machine+"bomb", `{"metadata":{"uid":"1","deletionTimestamp":"2024-01-01T00:00:00Z"}}`,
		machine+"standby", global, // the standby's own
		machine+"more", `{"metadata":{}}`,
		secret+"same", "x",
		secret+"enc", "k8s:enc:aescbc:v1:k:2",
		"/registry/leases/shop/a", "2",
		"/lockstep/mirror/checkpoint", "{}",
	)
	cut := replica.Cut{Rev: 7, Mod: 9}
	got, err := replica.Compare(cut, rules, sorted(primary), sorted(standby), 1)
	if err != nil {
		t.Fatal(err)
	}
	want := replica.Verdict{
		Cut: cut, Keys: 5, Missed: 2, Surplus: 1, Differs: 2, Unread: 1,
		Classes: map[string]int{"capi": 3, "global": 2, "lease": 1, "otherwise": 2, "outside": 2, "sync-equal": 1},
		Findings: []replica.Finding{ // one of each kind is told, all are counted
			{Key: machine + "bomb", Kind: replica.Differs, Reason: stored.DeletingOnStandby, Critical: true},
			{Key: machine + "gone", Kind: replica.Missed, Critical: true},
			{Key: machine + "more", Kind: replica.Extra, Critical: true},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	for _, broken := range []bool{true, false} {
		sentinel := errors.New("cut off")
		failing := func(yield func(replica.KV, error) bool) { yield(replica.KV{}, sentinel) }
		one, other := failing, sorted(standby)
		if broken {
			one, other = sorted(primary), failing
		}
		if v, err := replica.Compare(cut, rules, one, other, 4); !errors.Is(err, sentinel) || v.Consistent {
			t.Errorf("what could not be read gave %+v, %v", v, err)
		}
	}
}

// However many there are of one kind, the lists of the others hold theirs; and
// critical keys come before others.
//
// covers: D-11
func TestFindingsOfEachKind(t *testing.T) {
	const machines, maps = "/registry/cluster.x-k8s.io/machines/fleet/", "/registry/configmaps/shop/"
	primary := state(maps+"a", "1", maps+"b", "1", maps+"c", "1", maps+"m", "1", machines+"z", "1", "/registry/secrets/shop/x", "1")
	standby := state(maps+"a", "2", maps+"b", "2", maps+"c", "2", maps+"s", "1", machines+"z", "1", "/registry/secrets/shop/x", "2", "/registry/secrets/fleet/y", "1")
	delete(standby, machines+"z")
	rules := selection.Rules{SyncEqual: map[string]bool{"/registry/secrets/shop/x": true}}
	v, err := replica.Compare(replica.Cut{}, rules, sorted(primary), sorted(standby), 2)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range v.Findings {
		got = append(got, string(f.Kind)+" "+f.Key)
	}
	want := []string{
		"missed " + machines + "z", "differs " + maps + "a", "missed " + maps + "m", "surplus " + maps + "s",
		"surplus /registry/secrets/fleet/y", "differs /registry/secrets/shop/x",
	}
	if diff := cmp.Diff(want, got); diff != "" || v.Differs != 4 || v.Missed != 2 || v.Surplus != 2 {
		t.Errorf("%s\n%+v", diff, v)
	}
}

// both yields what either map holds.
func both[V any](a, b map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, m := range []map[string]V{a, b} {
			for k, v := range m {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}

// The merge of two sorted streams finds what two maps tell at once.
func TestCompareIsTheDifferenceOfTwoMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) map[string]replica.KV {
			held := map[string]replica.KV{}
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 8).Draw(t, name) {
				kind := [...]string{"configmaps", "leases"}[i%2]
				key := fmt.Sprintf("/registry/%s/shop/%d", kind, i)
				held[key] = replica.KV{Key: key, Value: []byte{byte('a' + rapid.IntRange(0, 1).Draw(t, "value"))}}
			}
			return held
		}
		primary, standby := draw("primary"), draw("standby")
		want := replica.Verdict{Classes: map[string]int{}}
		for key := range maps.Collect(both(primary, standby)) {
			want.Classes[rules.Classify(key).Rule]++
		}
		surplus := map[string]bool{}
		for key, kv := range primary {
			other, there := standby[key]
			switch {
			case !isMirrored(key):
				continue
			case !there:
				want.Missed++
			case string(other.Value) != string(kv.Value):
				want.Differs++
			}
			want.Keys++
		}
		for key := range standby {
			if _, there := primary[key]; !there && isMirrored(key) {
				want.Surplus++
				surplus[key] = true
			}
		}
		want.Consistent = want.Missed+want.Differs+want.Surplus == 0
		got, err := replica.Compare(replica.Cut{}, rules, sorted(primary), sorted(standby), 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		for kv, err := range replica.Surplus(rules, sorted(primary), sorted(standby)) {
			if err != nil || !surplus[kv.Key] {
				t.Fatalf("%s was found, %v", kv.Key, err)
			}
			delete(surplus, kv.Key)
		}
		if len(surplus) > 0 {
			t.Fatalf("not found: %v", surplus)
		}
	})
}
