package admission

import (
	"fmt"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// HTTP status codes of a request that is not allowed (RFC 9110).
const (
	codeUnfit  = 400
	codeDenied = 403
	codeEarly  = 412
	codeUnread = 500
)

// Verdict is the answer to a request.
type Verdict struct {
	Allowed bool
	// Rule that decided; empty when none objected, or when the request could not
	// be read.
	Rule string
	// Code is the HTTP status of a request that is not allowed.
	Code int32
	// Message is for the caller; empty when allowed.
	Message string
}

// Step is one rule of a list, with its judgement over a request for T and what
// was observed as O.
type Step[T, O any] struct {
	rule.Rule
	judge func(Request[T], O) ruling
}

// ruling is what one step says.
type ruling struct {
	end   ending
	code  int32
	why   string
	until string // of end skip: the step that is asked next
}

type ending int

const (
	undecided ending = iota
	allowed
	denied
	skip
)

var pass, allow = ruling{end: undecided}, ruling{end: allowed}

// deny is a no to this caller for this request.
func deny(format string, args ...any) ruling {
	return ruling{end: denied, code: codeDenied, why: fmt.Sprintf(format, args...)}
}

// unfit is a no to a request that makes no sense, whoever asks.
func unfit(format string, args ...any) ruling {
	return ruling{end: denied, code: codeUnfit, why: fmt.Sprintf(format, args...)}
}

// early is a no to a request whose time has not come.
func early(format string, args ...any) ruling {
	return ruling{end: denied, code: codeEarly, why: fmt.Sprintf(format, args...)}
}

// unread is a no because the controller could not look. Why it could not is for
// its log; to a member it might tell more than it should.
func unread(what string) ruling {
	return ruling{end: denied, code: codeUnread, why: what + " could not be read"}
}

func skipTo(id string) ruling { return ruling{end: skip, until: id} }

// denyIf is the form of most rules: one condition, one reason.
func denyIf(condition bool, format string, args ...any) ruling {
	if !condition {
		return pass
	}
	return deny(format, args...)
}

// decide asks the steps in order until one decides. A request nobody objects to
// is allowed.
func decide[T, O any](kind string, steps []Step[T, O], r Request[T], o O) Verdict {
	until := ""
	for _, step := range steps {
		if until != "" && step.ID != until {
			continue
		}
		until = ""
		switch ruling := step.judge(r, o); ruling.end {
		case allowed:
			return Verdict{Allowed: true, Rule: step.ID}
		case denied:
			sentence := &refusal.Refusal{What: what(kind, r), Why: ruling.why, Next: step.Remedy, Rule: step.ID}
			return Verdict{Rule: step.ID, Code: ruling.code, Message: sentence.Error()}
		case skip:
			until = ruling.until
		}
	}
	return Verdict{Allowed: true}
}

// legible begins every list: nothing can be asked about a request whose objects
// are not there. The rule's id is empty where no numbered rule says so.
func legible[T, O any](id string) Step[T, O] {
	return Step[T, O]{
		Rule: rule.Rule{
			ID: id, Severity: rule.Refuse, Title: "An object that can be read",
			Why:    "What an object is and whose it is cannot be told from one that cannot be decoded.",
			Remedy: "compare it with the CRD of its kind",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r Request[T], _ O) ruling {
			if r.complete() {
				return pass
			}
			return unfit("the object is missing or cannot be decoded")
		},
	}
}

// what is `cannot update ResourceExport "x"`.
func what[T any](kind string, r Request[T]) string {
	of := ""
	if r.Subresource != "" {
		of = r.Subresource + " of "
	}
	if r.Name == "" {
		return fmt.Sprintf("cannot %s %s%s", strings.ToLower(string(r.Operation)), of, kind)
	}
	return fmt.Sprintf("cannot %s %s%s %q", strings.ToLower(string(r.Operation)), of, kind, r.Name)
}

// rulesOf lists the rules of a list of steps, without their judgements.
func rulesOf[T, O any](steps []Step[T, O]) []rule.Rule {
	var rules []rule.Rule
	for _, step := range steps {
		if step.ID != "" {
			rules = append(rules, step.Rule)
		}
	}
	return rules
}
