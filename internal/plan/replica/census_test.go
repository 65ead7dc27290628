package replica_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// covers: D-02
func TestCensus(t *testing.T) {
	side := func(kind string, from, to int) map[string]replica.KV {
		kvs := map[string]replica.KV{"/registry/leases/shop/x": {Key: "/registry/leases/shop/x"}}
		for i := from; i < to; i++ {
			key := fmt.Sprintf("/registry/%s/shop/%04d", kind, i)
			kvs[key] = replica.KV{Key: key}
		}
		return kvs
	}
	for name, c := range map[string]struct {
		source, target  map[string]replica.KV
		first, accepted bool
		want            string
	}{
		"an empty standby":                      {side("configmaps", 0, 500), side("leases", 0, 9), true, false, ""},
		"an empty primary":                      {side("leases", 0, 9), side("configmaps", 0, 500), true, false, "no key below"},
		"an empty primary is never wanted":      {side("leases", 0, 9), side("configmaps", 0, 500), true, true, "no key below"},
		"nor later":                             {side("leases", 0, 9), side("configmaps", 0, 5), false, false, "no key below"},
		"swapped":                               {side("configmaps", 0, 200), side("configmaps", 0, 900), true, false, "would delete 700 of its 900"},
		"swapped and wanted":                    {side("configmaps", 0, 200), side("configmaps", 0, 900), true, true, ""},
		"a few of a fresh cluster":              {side("configmaps", 0, 200), side("configmaps", 150, 300), true, false, ""},
		"less than half":                        {side("configmaps", 0, 900), side("configmaps", 500, 1200), true, false, ""},
		"deleted on the primary since the copy": {side("configmaps", 0, 10), side("configmaps", 0, 900), false, false, ""},
	} {
		census, err := replica.Count(rules, sorted(c.source), sorted(c.target))
		if err != nil {
			t.Fatal(err)
		}
		err = census.Admit("/registry/", c.first, c.accepted)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v gives %v, want %q", name, census, err, c.want)
		}
	}
	for _, c := range []struct {
		here, there bool
		want        string
	}{{true, false, ""}, {false, false, "is not in the standby's etcd"}, {false, true, "is in the primary's etcd"}, {true, true, ""}} {
		err := replica.Elected("/registry/leases/x/y", c.here, c.there)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("here %t, there %t: %v, want %q", c.here, c.there, err, c.want)
		}
	}
}
