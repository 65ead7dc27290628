package restart

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/bench/internal/journal"
	"github.com/lockstep-dev/lockstep/bench/internal/requests"
	"github.com/lockstep-dev/lockstep/bench/internal/tally"
)

var seen = []journal.Write{
	{Resource: "leases", Name: "lockstep-member"},
	{Resource: "leases", Name: "east-node"},
	{Resource: "memberclusterannounces.multicluster.crd.antrea.io", Name: "member-announce-from-east"},
	{Resource: "pods", Name: "antrea-mc-controller-x", Managers: []string{"lockstep-lab-node"}},
	{Resource: "resourceexports.multicluster.crd.antrea.io", Name: "east-bench-fresh-0-1-service"},
	{Resource: "endpointslices", Name: "antrea-mc-kept-0001-east-0", Managers: []string{"lockstep-member"}},
	{Resource: "endpointslices", Name: "fresh-0-1", Managers: []string{"lockstep-bench"}},
	{Resource: "serviceimports.multicluster.x-k8s.io", Name: "kept-0002", Deleted: true},
	{Resource: "clustersets.multicluster.crd.antrea.io", Changed: []string{"metadata.annotations.multicluster.lockstep.dev/leader-seen"}},
	{Resource: "clustersets.multicluster.crd.antrea.io", Changed: []string{"status"}},
}

func TestWritesAreCountedOnce(t *testing.T) {
	var got Counts
	unwanted := got.addWrites(seen, "fresh-0-1")
	want := Counts{Writes: 3, Memories: 1, Fresh: 1, FreshKinds: map[string]int{"resourceexports.multicluster.crd.antrea.io": 1}, Announces: 1, Leases: 1, Others: 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]journal.Write{seen[5], seen[7], seen[9]}, unwanted); diff != "" {
		t.Error(diff)
	}
}

func TestRequestsThatReachNoObjectAreInVain(t *testing.T) {
	asked := requests.Counts{
		"leases": 9, "pods": 3, // not kinds whose requests matter
		"memberclusterannounces.multicluster.crd.antrea.io": 2, // one of them in conflict
		"resourceexports.multicluster.crd.antrea.io":        1,
		"serviceimports.multicluster.x-k8s.io":              1,
		"clustersets.multicluster.crd.antrea.io":            2,
		"endpointslices":                                    3, // one without a difference
	}
	var got Counts
	got.addVain(tally.Written{Writes: seen, Asked: asked})
	want := map[string]int{"memberclusterannounces.multicluster.crd.antrea.io": 1, "endpointslices": 1}
	if diff := cmp.Diff(want, got.VainKinds); diff != "" || got.Vain != 2 {
		t.Errorf("%d requests in vain, want 2 (-want +got):\n%s", got.Vain, diff)
	}
}
