package restore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// After an interruption, what the common area shows may be a backup. As long as
// no heartbeat has told, nothing is withdrawn; here heartbeats are forbidden.
func TestNothingIsWithdrawnBeforeAHeartbeat(t *testing.T) {
	p := newPair(t, "doubt")
	ns := p.namespace
	p.export(t, p.east, "stays1", "goes2")
	p.awaitAll(t, []string{"stays1", "goes2"}, nil)
	west := p.west.Watch(t, ns, "stays1", "goes2")

	role := &rbacv1.Role{}
	role.Namespace, role.Name = p.Area, v1alpha1.MemberClusterRole
	var rules []rbacv1.PolicyRule
	p.Leader.Change(t, role, func() {
		rules = role.DeepCopy().Rules
		for i := range role.Rules {
			role.Rules[i].Resources = slices.DeleteFunc(role.Rules[i].Resources, func(r string) bool { return r == "memberclusterannounces" })
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Leader.Lab.Restart(ctx, lab.APIServer); err != nil {
		t.Fatal(err)
	}
	fleet.Eventually(t, "the heartbeat of west is refused", func() error {
		return p.west.CheckCondition(t, "False", clusterset.ReasonUnauthorized)
	})
	p.east.Unexport(t, ns, "goes2")
	p.AwaitWire(t, "it is withdrawn", ns, "goes2", func(w fleet.Wire) error {
		if w.Import != nil || len(w.Slices) > 0 {
			return errors.New("it is still there")
		}
		return nil
	})
	fleet.Steadily(t, 2*time.Second, "west withdraws nothing", west.Check)

	west.Release("goes2")
	p.Leader.Change(t, role, func() { role.Rules = rules })
	p.west.AwaitNoImport(t, ns, "goes2")
	awaitTrust(t, p.west)
	west.Verdict(t)
}
