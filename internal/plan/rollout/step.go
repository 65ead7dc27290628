package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Step is a part of an upgrade, as the world shows it.
type Step struct {
	// ID is stable while the upgrade lasts: "switch/east".
	ID    string `json:"id"`
	Title string `json:"title"`
	// Lane is the part of the fleet it touches, as canaries are named; empty for
	// what all share.
	Lane string `json:"lane,omitempty"`
	// Needs are ids of steps that have to be done before it.
	Needs []string `json:"needs,omitempty"`
	// Gates are ids of the rules that must not refuse it; Findings what they, and
	// the step itself, found.
	Gates    []string       `json:"gates,omitempty"`
	Findings []rule.Finding `json:"findings,omitempty"`
	// Changes are what it would change now, in this order.
	Changes []Change `json:"changes,omitempty"`
	// Waits are sentences about what has to come true by itself.
	Waits []string `json:"waits,omitempty"`
	// Done: the world is as the step wants it.
	Done bool `json:"done"`
	// Begun: something of it has been changed already.
	Begun bool `json:"begun,omitempty"`
	// Until names the step whose end frees the lane for others. A step with one
	// is paced: canaries go first, and only so many lanes are under way.
	Until string `json:"until,omitempty"`
	// Never is what the step does not do, whatever happens.
	Never string `json:"never,omitempty"`
	// Rests are the facts that its changes rest on.
	Rests []string `json:"rests,omitempty"`
	// Grave: what it does cannot be taken back by undoing it. It is decided twice,
	// from two readings of the world, before anything is changed.
	Grave bool `json:"grave,omitempty"`
	// Record is what the journal has to hold from now on.
	Record []Entry `json:"record,omitempty"`
}

// Phase is the first part of the id: "switch".
func (s Step) Phase() string {
	phase, _, _ := strings.Cut(s.ID, "/")
	return phase
}

// Digest stands for what the step would change, and nothing else. An approval
// names it.
func (s Step) Digest() string { return digest(s.ID, s.Changes) }

// Verb is a kind of write.
type Verb string

// All verbs. What a write consists of is known to whoever makes it.
const (
	Create  Verb = "create"
	Update  Verb = "update"
	Delete  Verb = "delete"
	Restart Verb = "restart"
	// Apply brings a whole set of manifests; it is one change of a plan and
	// several writes, each of which may be repeated.
	Apply Verb = "apply"
)

// Change is one write that a step would make.
type Change struct {
	Do   Verb   `json:"do"`
	Kind string `json:"kind"`
	// Lane is where the object is; empty is where the upgrade is led from.
	Lane      string  `json:"lane,omitempty"`
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	Fields    []Field `json:"fields,omitempty"`
	// Beside is what a person wants to see with it and what does not make it another
	// change: how far the world is from it already.
	Beside []Field `json:"-"`
	// Alone: what comes after it is decided by the next look, when it has had its
	// effect.
	Alone bool `json:"-"`
	// Seen is the resource version of the object as the plan saw it. It changes
	// with every heartbeat and means nothing to a person, so no digest has it.
	Seen string `json:"-"`
}

// Field is one field of an object, before and after. Neither holds a secret.
type Field struct {
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// String is the line a person reads.
func (c Change) String() string {
	name := c.Name
	if c.Namespace != "" {
		name = c.Namespace + "/" + name
	}
	var line strings.Builder
	fmt.Fprintf(&line, "%s %s %s", c.Do, c.Kind, name)
	if c.Lane != "" {
		line.WriteString(" in " + c.Lane)
	}
	for i, f := range c.shown() {
		if i == 0 {
			line.WriteString(":")
		} else {
			line.WriteString(",")
		}
		line.WriteString(" " + f.String())
	}
	return line.String()
}

// shown are the fields, with what they are now where that stands beside them.
func (c Change) shown() []Field {
	shown := slices.Clone(c.Fields)
	for _, f := range c.Beside {
		if i := slices.IndexFunc(shown, func(other Field) bool { return other.Path == f.Path }); i >= 0 {
			shown[i].From = f.From
			continue
		}
		shown = append(shown, f)
	}
	return shown
}

// String shows the field as path old -> new.
func (f Field) String() string {
	switch {
	case f.From == "":
		return fmt.Sprintf("%s = %s", f.Path, f.To)
	case f.To == "":
		return fmt.Sprintf("%s was %s", f.Path, f.From)
	}
	return fmt.Sprintf("%s %s -> %s", f.Path, f.From, f.To)
}

// Entry is one thing for the journal: what the world forgets.
type Entry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func digest(parts ...any) string {
	sum := sha256.New()
	encoder := json.NewEncoder(sum)
	for _, part := range parts {
		_ = encoder.Encode(part) // values of this package always encode
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
