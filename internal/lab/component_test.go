package lab

import (
	"slices"
	"testing"
)

func TestFsyncIsAChoice(t *testing.T) {
	for _, fsync := range []bool{false, true} {
		spec := &Spec{Dir: "/lab", Fsync: fsync, Clusters: []ClusterSpec{{Name: "east"}}}
		site, err := spec.site("east")
		if err != nil {
			t.Fatal(err)
		}
		if unsafe := slices.Contains(site.etcd().Args, "--unsafe-no-fsync=true"); unsafe == fsync {
			t.Errorf("with fsync %v etcd gets %q", fsync, site.etcd().Args)
		}
	}
}

// Two controllers are left out on purpose: a lab that slept with the laptop
// must not lose its Pods when it wakes up.
func TestNobodyEvictsPodsOfASilentNode(t *testing.T) {
	for _, name := range []string{"node-lifecycle-controller", "taint-eviction-controller"} {
		if slices.Contains(controllers, name) {
			t.Errorf("%s runs", name)
		}
	}
}
