package migration_test

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/migration"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// What could not be read is not taken for "not there": in a fleet that is finished
// nothing is changed because of it, and nothing of what was proven is forgotten.
func TestWhatCouldNotBeReadChangesNothing(t *testing.T) {
	const why = "the server is currently unable to handle the request"
	for name, hide := range map[string]func(o *migration.Observed, m *preflight.Member, target *migration.Target){
		"the tokens of the common area": func(o *migration.Observed, _ *preflight.Member, _ *migration.Target) {
			o.Tokens, o.TokenSecrets = rule.Unreadable[[]migration.Token](why), nil
		},
		"ServiceAccounts": func(o *migration.Observed, _ *preflight.Member, _ *migration.Target) {
			o.Evidence.Leader.Accounts = rule.Unreadable[[]admission.Account](why)
		},
		"bindings": func(o *migration.Observed, _ *preflight.Member, _ *migration.Target) {
			o.Evidence.Leader.Grants = rule.Unreadable[[]preflight.Grant](why)
		},
		"announces": func(o *migration.Observed, _ *preflight.Member, _ *migration.Target) {
			o.Evidence.Leader.Announces = rule.Unreadable[[]v1alpha1.MemberClusterAnnounce](why)
		},
		"exports": func(o *migration.Observed, _ *preflight.Member, _ *migration.Target) {
			o.Evidence.Leader.Exports = rule.Unreadable[[]v1alpha1.ResourceExport](why)
		},
		"the time": func(o *migration.Observed, _ *preflight.Member, _ *migration.Target) {
			o.Evidence.Leader.Now = rule.Unreadable[time.Time](why)
		},
		"the names of Secrets": func(o *migration.Observed, _ *preflight.Member, _ *migration.Target) {
			o.Evidence.Leader.Secrets = rule.Unreadable[[]string](why)
		},
		"what the leader is to be": func(o *migration.Observed, _ *preflight.Member, _ *migration.Target) {
			o.Leader.Differs = rule.Unreadable[[]string](why)
		},
		"the member's credential": func(_ *migration.Observed, m *preflight.Member, target *migration.Target) {
			m.Credential, target.Secrets = rule.Unreadable[preflight.Credential](why), nil
		},
		"the member's ClusterSet": func(_ *migration.Observed, m *preflight.Member, target *migration.Target) {
			m.ClusterSets, m.Credential = rule.Unreadable[[]v1alpha2.ClusterSet](why), rule.Read[preflight.Credential]{}
			target.Secrets = nil
		},
		"the member's ClusterSet, and which ID it has": func(_ *migration.Observed, m *preflight.Member, target *migration.Target) {
			m.ID, m.ClusterSets, m.Credential = "", rule.Unreadable[[]v1alpha2.ClusterSet](why), rule.Read[preflight.Credential]{}
			target.Secrets = nil
		},
		"that the member has a ClusterSet": func(_ *migration.Observed, m *preflight.Member, target *migration.Target) {
			m.ClusterSets, m.Credential = rule.Known([]v1alpha2.ClusterSet{}), rule.Read[preflight.Credential]{}
			target.Secrets = nil
		},
		"the member's controllers": func(_ *migration.Observed, m *preflight.Member, _ *migration.Target) {
			m.Controllers = rule.Unreadable[[]preflight.Controller](why)
		},
		"whether it is rolled out": func(_ *migration.Observed, _ *preflight.Member, target *migration.Target) {
			target.Rolling = rule.Unreadable[string](why)
		},
		"what it exports": func(_ *migration.Observed, m *preflight.Member, _ *migration.Target) {
			m.Exported = rule.Unreadable[[]preflight.Exported](why)
		},
		"what it is to be": func(_ *migration.Observed, _ *preflight.Member, target *migration.Target) {
			target.Install.Differs = rule.Unreadable[[]string](why)
		},
		"the way to it": func(_ *migration.Observed, m *preflight.Member, target *migration.Target) {
			*m = preflight.Member{ID: m.ID, Cluster: preflight.Cluster{Unreachable: why}}
			target.Secrets, target.NoWay = nil, why
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, upstream := range []bool{false, true} {
				w := newFleet(upstream, "east", "west")
				w.finish(t)
				o := w.observe()
				hide(&o, &o.Evidence.Members[0], &o.Targets[0])
				decision := rollout.Decide(migration.Plan(o), w.policy)
				for _, step := range decision.Act() {
					t.Errorf("upstream %v: step %s would change %v", upstream, step.ID, step.Changes)
				}
				for _, e := range decision.Record() {
					t.Errorf("upstream %v: the journal would get %q = %q", upstream, e.Key, e.Value)
				}
			}
		})
	}
}

// finish drives a fleet until all is done.
func (w *world) finish(t *testing.T) {
	t.Helper()
	for range 200 {
		decision := w.decide()
		if decision.Phase == rollout.Done {
			return
		}
		w.act(decision, func() bool { return false })
		w.tick()
	}
	t.Fatalf("not done: %s", w.decide().Message())
}
