package replica_test

import (
	"slices"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// A key that changes all the time does not keep the others from being deleted, and
// is left after three tries.
//
// covers: M-1
func TestSurplusThatChanges(t *testing.T) {
	var r replica.Removal
	kv := func(name string, mod int64) replica.KV {
		return replica.KV{Key: "/registry/configmaps/shop/" + name, Value: []byte(`{"metadata":{}}`), Mod: mod}
	}
	for _, name := range []string{"lock", "gone", "old"} {
		r.Add(rules, kv(name, 1))
	}
	for try := int64(1); try <= 3; try++ {
		left := r.Again(rules, []replica.KV{kv("lock", 1+try), kv("old", 1)})
		var keys []string
		for _, kv := range r.Keys {
			keys = append(keys, kv.Key)
		}
		want, wantLeft := []string{kv("lock", 0).Key, kv("old", 0).Key}, []string(nil)
		if try == 3 {
			want, wantLeft = want[1:], want[:1]
		}
		if !slices.Equal(keys, want) || !slices.Equal(left, wantLeft) {
			t.Errorf("try %d: %q remain and %q are left; want %q and %q", try, keys, left, want, wantLeft)
		}
	}
}

// What only the standby has and nobody can read is not deleted by its key alone:
// its labels may say that it is the standby's own.
//
// covers: M-1, D-12
func TestEncryptedSurplusIsKept(t *testing.T) {
	encrypted := []byte("k8s:enc:aescbc:v1:key1:\x01\x02\x03")
	for _, c := range []struct {
		key   string
		value string
		want  bool
	}{
		{"/registry/elemental.cattle.io/machineinventories/fleet/own", string(encrypted), false},
		{"/registry/secrets/shop/password", string(encrypted), false},
		{"/registry/secrets/shop/password", `{"metadata":{"name":"password"}}`, true},
		{"/registry/secrets/shop/password", `{"metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"global"}}}`, false},
		{"/registry/leases/shop/x", `{"metadata":{}}`, false},
	} {
		if got := replica.Removable(rules, c.key, []byte(c.value)); got != c.want {
			t.Errorf("%s with %.20q may be deleted: %t, want %t", c.key, c.value, got, c.want)
		}
	}
}
