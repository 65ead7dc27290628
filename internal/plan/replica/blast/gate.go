package blast

import (
	"fmt"
	"time"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Freshness is how old a verdict may be.
const Freshness = 10 * time.Minute

// Evidence is all that the gate depends on.
type Evidence struct {
	Now time.Time
	// Source and Target are the roles that both etcds carry.
	Source, Target replica.Side
	Verdict        replica.Judgement
	Why            string // the reason of the verdict
	At             time.Time
	Foreign        int // keys that somebody else has changed since the cut
	// Repaired is a time after which nothing was given back: that of the first of the
	// clean comparisons, or an earlier one that somebody vouches for. Zero: not known.
	Repaired         time.Time
	Standby, Primary Prediction
	// AcceptUnread: somebody vouches for values that cannot be read.
	AcceptUnread bool
}

// most bounds the evidence of one finding; the prediction itself has all.
const most = 20

// Detach asks whether the mirror may be taken away: equality of values (D-11), no
// deletion of the standby's own (D-13), no owner missing (D-12, D-14), nothing
// predicted (F-01 to F-05), a garbage collector without a past (DET-E), no write by
// somebody else since the cut (D-11), and a standby that is one (D-20). That the
// mirror is steady is a condition of having evidence at all.
func Detach(e Evidence) []rule.Finding {
	var g gate
	g.direction(e)
	g.equality(e)
	g.changes("D-10", "primary", e.Primary.Idle, "%s is %s; resolve before continuing")
	g.changes("D-10", "standby", e.Standby.Idle, "%s is %s; resolve before continuing")
	g.drift("D-12", e.Standby.Dangling, "it would be garbage-collected")
	g.drift("D-13", e.Standby.Drift, "ending the guard would end its deletion")
	g.drift("D-14", e.Standby.Drift, "it resolves to a different object on the standby")
	g.changes("D-15", "primary", e.Primary.Changes, "%s is changing: %s; freeze it before the mirror is detached")
	if !e.Standby.Guarded {
		g.add("D-16", "standby", "standby controllers are not guarded: there is no ConfigMap kube-public/etcd-sync")
	}
	g.unread(e)
	g.restart(e)
	g.predicted(e.Standby)
	g.failback(e.Primary)
	rule.Sort(g.findings)
	return g.findings
}

type gate struct{ findings []rule.Finding }

// add a finding with the weight and the remedy of its rule.
func (g *gate) add(id, cluster, format string, args ...any) *rule.Finding {
	r := byID[id]
	g.findings = append(g.findings, rule.Finding{Rule: id, Severity: r.Severity, Cluster: cluster, Message: fmt.Sprintf(format, args...), Remedy: r.Remedy})
	return &g.findings[len(g.findings)-1]
}

func (g *gate) direction(e Evidence) {
	switch {
	case e.Target == replica.Primary:
		g.add("D-20", "standby", "uninstall on the standby only: what is called the standby is marked as primary")
	case e.Target != replica.Standby:
		g.add("D-20", "standby", "what is called the standby carries no such role, but %q", e.Target)
	case e.Source == replica.Standby:
		g.add("D-20", "primary", "both sides are marked as standby")
	}
}

func (g *gate) equality(e Evidence) {
	switch {
	case e.Verdict == replica.Inconsistent:
		g.add("D-11", "standby", "standby is not consistent: %s; do not detach the mirror", e.Why)
	case e.Foreign > 0:
		g.add("D-11", "standby", "somebody else has changed %s of the standby since the cut", count(e.Foreign, "mirrored key"))
	case e.Verdict != replica.Consistent:
		g.add("D-11", "standby", "it is not known whether the standby is consistent: %s", e.Why).Severity = rule.Wait
	case e.Now.Sub(e.At) > Freshness:
		g.add("D-11", "standby", "the verdict is older than %s", Freshness).Severity = rule.Wait
	}
}

func (g *gate) drift(id string, all []Drift, then string) {
	var those []Drift
	for _, d := range all {
		if d.Rule == id {
			those = append(those, d)
		}
	}
	if len(those) == 0 {
		return
	}
	f := g.add(id, "standby", "%s: %s; %s%s", those[0].Thing, those[0].Detail, then, more(len(those)))
	for _, d := range those[:min(most, len(those))] {
		f.Objects, f.Evidence = append(f.Objects, d.Thing.object()), append(f.Evidence, d.Thing.String()+": "+d.Detail)
	}
}

func (g *gate) changes(id, cluster string, all []Change, format string) {
	if len(all) == 0 {
		return
	}
	f := g.add(id, cluster, format+"%s", all[0].Thing, all[0].Why, more(len(all)))
	for _, c := range all[:min(most, len(all))] {
		f.Objects, f.Evidence = append(f.Objects, c.Thing.object()), append(f.Evidence, c.Thing.String()+": "+c.Why)
	}
}

func (g *gate) unread(e Evidence) {
	if e.Standby.Unread == 0 {
		return
	}
	f := g.add("F-05", "standby", "%s of the standby cannot be read, so what would happen to them is not known", count(e.Standby.Unread, "mirrored value"))
	f.Unknown, f.Remedy = true, "make sure by the API that their owners are there, then say --accept-unread"
	if e.AcceptUnread {
		f.Severity = rule.Warn
	}
}

func (g *gate) restart(e Evidence) {
	led := e.Standby.Led
	switch {
	case led == nil:
		g.add("DET-E", "standby", "since when the standby's kube-controller-manager leads is not known").Unknown = true
	case e.Repaired.IsZero() || !led.After(e.Repaired):
		f := g.add("DET-E", "standby", "the standby's kube-controller-manager has led since before it was known that nothing needs repair")
		f.Evidence = []string{"it leads since " + led.UTC().Format(time.RFC3339)}
	}
}
