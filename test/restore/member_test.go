package restore_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// A member cluster goes back to a backup of its own. What it exports is then
// what its API server says, and its imports are made good again; the leader and
// the other member have no reason to hold anything.
func TestMemberFromABackup(t *testing.T) {
	p := newPair(t, "member")
	ns := p.namespace
	p.export(t, p.east, "stays1", "ended2")
	p.export(t, p.west, "w1", "w2")
	p.awaitAll(t, []string{"stays1", "ended2"}, []string{"w1", "w2"})
	p.snapshot(t, p.east, "member")

	p.export(t, p.east, "new3")
	p.export(t, p.west, "w3")
	p.awaitAll(t, []string{"stays1", "ended2", "new3"}, []string{"w1", "w2", "w3"})
	p.east.Unexport(t, ns, "ended2")
	p.west.AwaitNoImport(t, ns, "ended2")
	p.west.Unexport(t, ns, "w2")
	p.east.AwaitNoImport(t, ns, "w2")
	before, err := p.east.Import(t, ns, "w1")
	if err != nil {
		t.Fatal(err)
	}
	p.awaitBeats(t)

	west := p.west.Watch(t, ns, "stays1")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := p.east.Lab.Restore(ctx, "member", 0); err != nil {
		t.Fatal(err)
	}
	p.west.AwaitNoImport(t, ns, "new3")
	p.awaitAll(t, []string{"stays1", "ended2"}, []string{"w1", "w3"})
	p.east.AwaitNoImport(t, ns, "w2")
	p.awaitMerged(t)
	after, err := p.east.Import(t, ns, "w1")
	if err != nil {
		t.Fatal(err)
	}
	if after.Import.Spec.IPs[0] != before.Import.Spec.IPs[0] {
		t.Errorf("the IP of w1 became %v, it was %v", after.Import.Spec.IPs, before.Import.Spec.IPs)
	}
	for _, m := range p.members() {
		awaitTrust(t, m)
	}
	if west.SawReason(clusterset.ReasonLeaderRestored) {
		t.Error("west holds withdrawals although the leader lost nothing")
	}
	west.Verdict(t)
}
