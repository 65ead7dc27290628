package restore_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// The leader cluster is lost altogether and made anew: manifests, ClusterSet and
// tokens. The members bring back what they export, and lose no import meanwhile.
func TestLeaderMadeAnew(t *testing.T) {
	p := newPair(t, "anew")
	ns := p.namespace
	fromEast, fromWest := []string{"e1", "e2", "e3", "e4", "e5"}, []string{"w1", "w2", "w3", "w4", "w5"}
	p.export(t, p.east, fromEast...)
	p.export(t, p.west, fromWest...)
	p.awaitAll(t, fromEast, fromWest)
	p.awaitBeats(t)
	former := memoryOf(t, p.west).ClusterSetUID
	witnesses := map[string]*fleet.Witness{}
	for _, m := range p.members() {
		witnesses[m.ID] = m.Watch(t, ns, append(fromEast, fromWest...)...)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := p.Leader.Lab.RestoreEmpty(ctx); err != nil {
		t.Fatal(err)
	}
	for _, m := range p.members() {
		fleet.Eventually(t, m.ID+" says that its token is not accepted", func() error {
			return m.CheckCondition(t, "False", clusterset.ReasonUnauthorized)
		})
	}
	p.InstallLeader(t)
	for _, m := range p.members() {
		m.Put(t, p.Token(t, m.Cluster, m.Namespace, "leader-token", m.ID))
	}
	for _, m := range p.members() {
		awaitNoticed(t, m, witnesses[m.ID])
	}
	for _, m := range p.members() {
		awaitTrust(t, m)
	}
	p.awaitAll(t, fromEast, fromWest)
	p.awaitMerged(t)
	if now := memoryOf(t, p.west).ClusterSetUID; now == former || now == "" {
		t.Errorf("the member remembers ClusterSet %q, and it was %q before", now, former)
	}
	for _, w := range witnesses {
		w.Verdict(t)
	}
}
