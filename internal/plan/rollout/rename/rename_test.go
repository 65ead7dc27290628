package rename_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/rename"
)

// drive looks and acts until nothing is left to do. A kill ends a run before some
// change of a step: the next one finds what is there.
func (w *world) drive(t rapid.TB, kill func() bool) {
	t.Helper()
	for range 500 {
		decision := w.decide()
		if decision.Phase == rollout.Done {
			return
		}
		w.act(decision, kill)
		w.tick()
		if len(w.faults) > 0 {
			t.Fatalf("%v", w.faults)
		}
	}
	t.Fatalf("not done: %s", w.decide().Message())
}

func (w *world) act(decision rollout.Decision, kill func() bool) {
	for _, step := range decision.Act() {
		for _, change := range step.Changes {
			if kill() {
				return
			}
			w.change(change)
			w.check()
		}
	}
}

// A rename that is killed anywhere, any number of times, is finished by the next
// one, and the other member has a ready endpoint at every moment.
func TestKilledAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld("east-1", "east1")
		w.lag = rapid.IntRange(0, 5).Draw(t, "ticks until the other member follows")
		if rapid.Bool().Draw(t, "somebody has made the credential") {
			w.accounts["by-hand"] = "east1"
		}
		w.drive(t, func() bool { return rapid.IntRange(0, 3).Draw(t, "killed") == 0 })
		if w.id != "east1" || w.mark != "" || len(w.announces) != 2 || len(w.exports) != 1 || len(w.secrets) != 1 || w.accounts["east-1-token"] != "" {
			t.Fatalf("it ends as %+v", w)
		}
	})
}

// The steps come in their order, and each is shown with what it would change
// before anything is changed.
func TestThePlanIsShownFirst(t *testing.T) {
	w := newWorld("east-1", "east1")
	decision := w.decide()
	var ids, changes []string
	for _, s := range decision.Steps {
		ids = append(ids, s.ID)
		for _, c := range s.Changes {
			changes = append(changes, c.String())
		}
	}
	if got, want := strings.Join(ids, " "), "credential carry switch publish seen withdraw forget"; got != want {
		t.Errorf("steps %s, want %s", got, want)
	}
	want := []string{
		"create ServiceAccount antrea-multicluster/east1-token: metadata.annotations[multicluster.antrea.io/cluster-id] = east1",
		"create RoleBinding antrea-multicluster/east1-token: roleRef.name = antrea-mc-member-cluster-role",
		"create Secret antrea-multicluster/east1-token: type = kubernetes.io/service-account-token",
		"create Secret kube-system/east1-token in kube-east: data = the token of ServiceAccount east1-token",
		"update ClusterSet kube-system/fleet in kube-east: spec.clusterID east-1 -> east1, spec.leaders[0].secret east-1-token -> east1-token, metadata.annotations[multicluster.lockstep.dev/renamed-from] = east-1",
		"delete MemberClusterAnnounce antrea-multicluster/member-announce-from-east-1",
		"delete ServiceAccount antrea-multicluster/east-1-token",
		"delete Secret kube-system/east-1-token in kube-east",
		"update ClusterSet kube-system/fleet in kube-east: metadata.annotations[multicluster.lockstep.dev/renamed-from] was east-1",
	}
	if !slices.Equal(changes, want) {
		t.Errorf("changes\n%s\nwant\n%s", strings.Join(changes, "\n"), strings.Join(want, "\n"))
	}
}

// Who asks for something that would cost an export is told why, with the rule, and
// nothing is changed.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		to     string
		change func(*world)
		rule   string
		says   string
	}{
		"no cluster ID":                {to: "East", rule: "UPG-CHK-18", says: "East"},
		"a pair with another":          {to: "west-1", rule: "UPG-CHK-7", says: `"west" and "west-1"`},
		"a pair with itself":           {to: "east-1-b", rule: "UPG-CHK-7", says: `"east-1" and "east-1-b"`},
		"another's ID":                 {to: "west", rule: "UPG-CHK-2", says: `"west" is that of another cluster`},
		"another's credential":         {to: "new", change: func(w *world) { w.accounts["new-token"] = "north" }, rule: "ADM-MCA-6", says: `bound to cluster ID "north"`},
		"two credentials":              {to: "new", change: func(w *world) { w.accounts["a"], w.accounts["b"] = "new", "new" }, rule: "UPG-CHK-2", says: "2 ServiceAccounts"},
		"Antrea's controller":          {to: "new", change: func(w *world) { w.upstream = true }, rule: "UPG-CHK-6", says: "WK-4"},
		"nobody of that name":          {to: "new", change: func(w *world) { w.id, w.old = "north", "east-1" }, rule: "UPG-CHK-5", says: "none of the contexts"},
		"another member is not looked": {to: "new", change: func(w *world) { w.hidden = true }, rule: "UPG-CHK-5", says: `"west" is not among the contexts`},
		"another rename under way":     {to: "new", change: func(w *world) { w.mark = "first" }, rule: "ADM-CS-2", says: `of "first" to "east-1" is not finished`},
		"it uses a shared credential":  {to: "new", change: func(w *world) { w.secrets["east-1-token"] = "shared"; w.accounts["shared"] = "" }, rule: "UPG-CHK-5", says: "shared"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("east-1", c.to)
			if c.change != nil {
				c.change(w)
			}
			for range 6 { // some stand in the way of a later step only
				if decision := w.decide(); decision.Phase != rollout.Ready {
					break
				} else {
					w.act(decision, func() bool { return false })
					w.signed[c.to+"-token"] = true
				}
			}
			decision := w.decide()
			if decision.Phase != rollout.Refused || w.id == c.to {
				t.Fatalf("it is %s: %s", decision.Phase, decision.Message())
			}
			for _, f := range decision.Findings() {
				if f.Rule == c.rule && strings.Contains(f.Message, c.says) {
					return
				}
			}
			t.Errorf("no finding of %s says %q: %+v", c.rule, c.says, decision.Findings())
		})
	}
}

// A member that is left out knowingly holds nothing up.
func TestUnseen(t *testing.T) {
	w := newWorld("east-1", "east1")
	w.hidden, w.unseen = true, []string{"west"}
	w.drive(t, func() bool { return false })
}

// Renaming what is renamed already is nothing to do, and a credential that was not
// made by a command line is told of and stays.
func TestAgain(t *testing.T) {
	w := newWorld("east-1", "east1")
	w.foreign["east-1-token"] = true
	w.drive(t, func() bool { return false })
	decision := rollout.Decide(rename.Plan(w.observe()), rollout.Policy{})
	if decision.Phase != rollout.Done || len(decision.Act()) > 0 {
		t.Errorf("it is %s: %s", decision.Phase, decision.Message())
	}
	if f := decision.Findings(); len(f) != 1 || f[0].Rule != "UPG-CHK-2" || w.accounts["east-1-token"] != "east-1" {
		t.Errorf("findings %+v, accounts %v", f, w.accounts)
	}
}
