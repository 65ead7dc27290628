package mc

import "fmt"

// Outcome says what became of one object.
type Outcome string

// The outcomes, in kubectl's words where it has one.
const (
	Created    Outcome = "created"
	Configured Outcome = "configured"
	Unchanged  Outcome = "unchanged"
	Deleted    Outcome = "deleted"
	NotFound   Outcome = "not found"
	Kept       Outcome = "kept"
	// Waiting: asked for, and a controller has yet to do it.
	Waiting Outcome = "waiting"
)

// Touched is one object a verb dealt with.
type Touched struct {
	Kind      string  `json:"kind"`
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	Outcome   Outcome `json:"outcome"`
}

// String is a line as kubectl prints it.
func (t Touched) String() string {
	return fmt.Sprintf("%s/%s %s", t.Kind, t.Name, t.Outcome)
}

// Progress is told, in plain sentences, about work that goes on. Nil is silent.
type Progress func(sentence string)

func (p Progress) sayf(format string, args ...any) {
	if p != nil {
		p(fmt.Sprintf(format, args...))
	}
}
