package mc

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// Outcome says what became of one object.
type Outcome = apply.Outcome

// Outcomes that only verbs know, beside those of writing.
const (
	Missing Outcome = "not found"
	// Kept: not made by the command line, so not removed by it.
	Kept Outcome = "kept"
	// Deleting: asked for; a controller has yet to finish.
	Deleting Outcome = "deleting"
)

// Touched is one object a verb dealt with.
type Touched struct {
	Kind      string  `json:"kind"`
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	Outcome   Outcome `json:"outcome"`
	// Note is a reason for people; empty for outcomes that need none.
	Note string `json:"note,omitempty"`
}

// String is a line as kubectl prints it.
func (t Touched) String() string {
	line := fmt.Sprintf("%s/%s %s", t.Kind, t.Name, t.Outcome)
	if t.Note != "" {
		line += " (" + t.Note + ")"
	}
	return line
}

// Progress is told, in plain sentences, about work that goes on. Nil is silent.
type Progress func(sentence string)

func (p Progress) sayf(format string, args ...any) {
	if p != nil {
		p(fmt.Sprintf(format, args...))
	}
}
