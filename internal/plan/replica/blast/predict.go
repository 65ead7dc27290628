package blast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verb is what would happen to an object.
type Verb string

// The verbs.
const (
	// Delete: it lives, and would be deleted or marked for deletion.
	Delete Verb = "delete"
	// Finish: it is marked for deletion already, and its deletion would end.
	Finish Verb = "finish"
	// Create: machines would be made.
	Create Verb = "create"
	// Trim: machines would be taken away; which, the controller decides.
	Trim Verb = "trim"
)

// Effect is one thing that would happen.
type Effect struct {
	Verb  Verb   `json:"verb"`
	Rule  string `json:"rule"`
	Thing Thing  `json:"object"`
	// Count of machines, for create and trim.
	Count int    `json:"count,omitempty"`
	Why   string `json:"why"`
	// By is who does it: the garbage collector does so as it is, and the others when
	// nothing guards the standby any more.
	By Doer `json:"by"`
	// Local: its key is not mirrored, so the other side has nothing to do with it.
	Local bool `json:"local,omitempty"`
	// Both: the other side deletes it as well.
	Both bool `json:"bothSides,omitempty"`
	// Held are the finalizers that other controllers have to end first.
	Held []string `json:"finalizers,omitempty"`
	// Of a Machine, as far as known.
	Node           string   `json:"node,omitempty"`
	Infrastructure string   `json:"infrastructure,omitempty"`
	Disks          []string `json:"disks,omitempty"`
}

// Doer is who brings an effect about.
type Doer string

// The doers.
const (
	// Collector: kube-controller-manager alone.
	Collector Doer = "garbage collector"
	// Controllers: those that end finalizers, and what is collected after them.
	Controllers Doer = "controllers"
)

// Prediction is all that would happen on one side.
type Prediction struct {
	Effects []Effect `json:"effects"`
	// Dangling is what refers to owners that are not there (D-12), by what refers.
	Dangling []Drift `json:"danglingOwners"`
	Drift    []Drift `json:"drift"`
	// Changes are workload clusters' objects that are changing on this side.
	Changes []Change `json:"changes"`
	// Idle are the platform's machines that are not running, with their phase (D-10).
	Idle []Change `json:"machinesNotRunning"`
	// Guarded: the marker that keeps this side's controllers still is there.
	Guarded bool `json:"guarded"`
	// Led is since when the present kube-controller-manager leads; nil: not known.
	Led     *time.Time `json:"controllerManagerSince,omitempty"`
	Unread  int        `json:"unread"`
	Objects int        `json:"objects"` // that were looked at
}

// Predict looks at all objects that were added. It may be called once.
func (w *World) Predict() Prediction {
	p := Prediction{Effects: []Effect{}, Dangling: []Drift{}, Drift: []Drift{}, Changes: []Change{}, Idle: []Change{},
		Unread: w.Unread, Objects: len(w.there), Guarded: w.platform.guarded, Led: w.platform.led}
	p.Idle = append(p.Idle, w.platform.idle...)
	now := map[id]*fate{}
	for _, f := range w.collect(false) {
		now[f.self] = f
	}
	later := w.collect(true)
	for _, f := range later {
		if f.marked {
			p.Effects = append(p.Effects, w.effect(f, now[f.self]))
		}
	}
	for _, m := range w.fleet.mismatches(later) {
		e := Effect{Verb: Create, Rule: "F-03", Thing: m.Thing, Count: m.Wants - m.Has, By: Controllers, Why: fmt.Sprintf("it wants %d machines and would have %d", m.Wants, m.Has)}
		if e.Count < 0 {
			e.Verb, e.Count = Trim, -e.Count
		}
		p.Effects = append(p.Effects, e)
	}
	w.drifts(&p)
	p.Changes = append(p.Changes, w.fleet.changes(w.nodes)...)
	p.sort()
	return p
}

// effect tells what becomes of an object; now is its fate when finalizers hold.
func (w *World) effect(f, now *fate) Effect {
	e := Effect{
		Verb: Delete, Rule: "F-01", Thing: f.thing(), Why: f.why, By: Collector,
		Local: !f.mirrored, Both: f.elsewhere, Held: f.held(),
	}
	if now.marked {
		e.Why = now.why
	} else {
		e.By = Controllers
	}
	if f.Deleting {
		e.Verb, e.Rule = Finish, "F-02"
		if !now.gone {
			e.By = Controllers
		}
	}
	if m, ok := w.fleet.machines[f.self]; ok {
		e.Node, e.Infrastructure, e.Disks = m.node, m.infrastructure, w.fleet.attached(f.node, m)
	}
	return e
}

// drifts looks at owners: absent ones, and mirrored objects that belong to
// something the side has for itself.
func (w *World) drifts(p *Prediction) {
	p.Drift = append(p.Drift, w.drift...)
	for _, n := range w.nodes {
		if !n.mirrored {
			continue
		}
		for i, r := range n.owners {
			switch self, ok := w.present(r); {
			case !ok:
				p.Dangling = append(p.Dangling, Drift{"D-12", n.thing(), "it is owned by " + ownerText(n, i) + ", which is not there"})
			case !w.there[self]:
				p.Drift = append(p.Drift, Drift{"D-14", n.thing(), "it is owned by " + ownerText(n, i) + ", which is this side's own"})
			}
		}
	}
}

// sort orders for people: machines first, then by kind and name.
func (p *Prediction) sort() {
	order := func(a, b Thing) int {
		return cmp.Or(cmp.Compare(weight(a), weight(b)), strings.Compare(a.String(), b.String()))
	}
	slices.SortStableFunc(p.Effects, func(a, b Effect) int { return order(a.Thing, b.Thing) })
	slices.SortStableFunc(p.Changes, func(a, b Change) int { return order(a.Thing, b.Thing) })
	for _, drifts := range [][]Drift{p.Dangling, p.Drift} {
		slices.SortStableFunc(drifts, func(a, b Drift) int {
			return cmp.Or(order(a.Thing, b.Thing), strings.Compare(a.Rule+a.Detail, b.Rule+b.Detail))
		})
	}
}

func weight(t Thing) int {
	switch {
	case t.Kind == kindMachine && t.Group == machineryGroup:
		return 0
	case t.Group == machineryGroup || strings.HasSuffix(t.Group, "."+machineryGroup):
		return 1
	}
	return 2
}

// Mirrored are the effects on what both sides share.
func (p Prediction) Mirrored() (shared []Effect) {
	for _, e := range p.Effects {
		if !e.Local {
			shared = append(shared, e)
		}
	}
	return shared
}

// String is one line.
func (e Effect) String() string {
	var text strings.Builder
	if e.Count > 0 {
		fmt.Fprintf(&text, "%s %d of %s", e.Verb, e.Count, e.Thing)
	} else {
		fmt.Fprintf(&text, "%s %s", e.Verb, e.Thing)
	}
	var more []string
	if e.Node != "" {
		more = append(more, "Node "+e.Node)
	}
	if e.Infrastructure != "" {
		more = append(more, e.Infrastructure)
	}
	if more = append(more, e.Disks...); len(more) > 0 {
		text.WriteString(" (" + strings.Join(more, "; ") + ")")
	}
	text.WriteString(": " + e.Why)
	if len(e.Held) > 0 {
		text.WriteString("; held back by " + strings.Join(e.Held, ", "))
	}
	return text.String()
}
