package blast

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// predicted turns effects on mirrored objects into findings. That a deletion ends
// which the primary has begun as well is no difference between the two.
func (g *gate) predicted(p Prediction) {
	by, machines, all := map[string][]Effect{}, []Effect{}, 0
	for _, e := range p.Mirrored() {
		if e.Verb == Finish && e.Both {
			continue
		}
		all++
		by[e.Rule] = append(by[e.Rule], e)
		if e.isMachine() && (e.Verb == Delete || e.Verb == Finish) {
			machines = append(machines, e)
		}
	}
	g.effects("F-01", by["F-01"], "%s would be deleted on the standby")
	g.effects("F-02", by["F-02"], "%s is marked for deletion and would be gone from the standby")
	g.effects("F-03", by["F-03"], "%s has another number of machines than it wants")
	g.effects("F-04", machines, "%s would be destroyed, and what it runs on")
	if all > 0 {
		g.add("F-05", "standby", "%s predicted to happen on the standby when its guard ends", are(all, "thing"))
	}
}

// failback asks the same of the primary.
func (g *gate) failback(p Prediction) {
	shared := p.Mirrored()
	if len(shared) == 0 {
		return
	}
	show(g.add("F-06", "primary", "%s predicted to happen on the primary", are(len(shared), "thing")), shared)
}

func (g *gate) effects(id string, all []Effect, format string) {
	if len(all) == 0 {
		return
	}
	show(g.add(id, "standby", format+"%s", all[0].Thing, more(len(all))), all)
}

// show names the first effects in a finding.
func show(f *rule.Finding, all []Effect) {
	for _, e := range all[:min(most, len(all))] {
		f.Objects, f.Evidence = append(f.Objects, e.Thing.object()), append(f.Evidence, e.String())
	}
}

// Outcome is the heaviest of the findings in a word that programs can test.
type Outcome string

// The outcomes.
const (
	Safe    Outcome = "Safe"
	Wait    Outcome = "Wait"
	Refused Outcome = "Refused"
)

// Outcome of findings.
func OutcomeOf(findings []rule.Finding) Outcome {
	switch heaviest, _ := rule.Heaviest(findings); heaviest {
	case rule.Refuse:
		return Refused
	case rule.Wait:
		return Wait
	}
	return Safe
}

// Uninstalled asks whether a detach is over: left is what is still there of the
// mirror, such as its Deployments, Pods, or the holder of its Lease.
func Uninstalled(left []rule.Object) []rule.Finding {
	var g gate
	for _, o := range left {
		g.add("D-21", "standby", "uninstall in progress: %s", o).Objects = []rule.Object{o}
	}
	return g.findings
}

// Upgrade asks whether a step of an upgrade may touch the standby: installed is
// what is there of the mirror.
func Upgrade(installed []rule.Object) []rule.Finding {
	if len(installed) == 0 {
		return nil
	}
	var g gate
	g.add("D-22", "standby", "uninstall the synchronizer first: %s is there", installed[0]).Objects = installed
	return g.findings
}

func (e Effect) isMachine() bool {
	return e.Thing.Kind == kindMachine && e.Thing.Group == machineryGroup
}

func (t Thing) object() rule.Object {
	return rule.Object{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}
}

func more(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n-1)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func are(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return count(n, what) + " are"
}
