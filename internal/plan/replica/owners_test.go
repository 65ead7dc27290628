package replica_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// covers: D-12, D-14
func TestDanglingOwners(t *testing.T) {
	object := func(kind, namespace, name, uid, owner string) []byte {
		return []byte(fmt.Sprintf(`{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":%q,"metadata":{"name":%q,"namespace":%q,"uid":%q,"ownerReferences":[%s]}}`,
			kind, name, namespace, uid, owner))
	}
	ref := func(kind, name, uid string) string {
		return fmt.Sprintf(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":%q,"name":%q,"uid":%q}`, kind, name, uid)
	}
	for name, c := range map[string]struct {
		owner []byte // beside Machine a/m
		ref   string
		want  int
		local bool
	}{
		"the owner is there, in another version":             {object("MachineSet", "a", "set", "1", ""), ref("MachineSet", "set", "1"), 0, false},
		"it is of the whole cluster":                         {object("MachineSet", "", "set", "1", ""), ref("MachineSet", "set", "1"), 0, false},
		"it is in another Namespace":                         {object("MachineSet", "b", "set", "1", ""), ref("MachineSet", "set", "1"), 1, false},
		"it has another UID: it was made anew":               {object("MachineSet", "a", "set", "2", ""), ref("MachineSet", "set", "1"), 1, false},
		"the UID is that of another name":                    {object("MachineSet", "a", "other", "1", ""), ref("MachineSet", "set", "1"), 1, false},
		"the UID is that of another kind":                    {object("Cluster", "a", "set", "1", ""), ref("MachineSet", "set", "1"), 1, false},
		"it is absent":                                       {nil, ref("MachineSet", "set", "1"), 1, false},
		"of two owners one is absent":                        {object("MachineSet", "a", "set", "1", ""), ref("MachineSet", "set", "1") + "," + ref("Cluster", "c", "3"), 1, false},
		"the standby's own objects are not the mirror's":     {nil, ref("MachineSet", "set", "1"), 0, true},
		"an object without owners":                           {nil, "", 0, false},
		"a value that cannot be read stands in nobody's way": {[]byte("k8s:enc:x"), "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, ownerFirst := range []bool{true, false} {
				var owners replica.Owners
				add := []func(){
					func() { owners.Add("/o", c.owner, true) },
					func() { owners.Add("/m", object("Machine", "a", "m", "9", c.ref), !c.local) },
					func() { owners.Add("/n", object("Machine", "a", "n", "8", c.ref), !c.local) },
				}
				if !ownerFirst {
					add[0], add[2] = add[2], add[0]
				}
				for _, f := range add {
					f()
				}
				got := owners.Dangling()
				if len(got) != c.want || len(got) == 1 && got[0].Dependents != 2 {
					t.Errorf("owner first: %t: got %v, want %d", ownerFirst, got, c.want)
				}
			}
		})
	}
	var owners replica.Owners
	owners.Add("/m", object("Machine", "a", "m", "9", ref("MachineSet", "set", "1")), true)
	want := "/m is owned by MachineSet.cluster.x-k8s.io a/set (UID 1), which the standby does not have; it would be garbage-collected"
	if diff := cmp.Diff(want, owners.Dangling()[0].String()); diff != "" {
		t.Error(diff)
	}
}
