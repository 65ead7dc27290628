package exit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// Report is an error as a program reads it. Next and Rule are empty where
// nothing is known; the keys are always there.
type Report struct {
	What string `json:"what"`
	Why  string `json:"why"`
	Next string `json:"next"`
	Rule string `json:"rule"`
	Code int    `json:"code"`
	// Right is what these credentials lack; nil for any other error.
	Right *Right `json:"right,omitempty"`
	// Also are the further ones of several errors that were found at once.
	Also []Report `json:"also,omitempty"`
}

// Right is one line of a Role: what has to be granted before the command can
// be repeated.
type Right struct {
	Verb string `json:"verb"`
	// Resource with its group: "clustersets.multicluster.crd.antrea.io".
	Resource string `json:"resource"`
	// Namespace is empty for a right in the whole cluster.
	Namespace string `json:"namespace"`
}

// String reads as in "the right to …".
func (r Right) String() string {
	if r.Namespace == "" {
		return fmt.Sprintf("%s %s in all Namespaces", r.Verb, r.Resource)
	}
	return fmt.Sprintf("%s %s in Namespace %q", r.Verb, r.Resource, r.Namespace)
}

// NewReport takes an error apart. An error that is no refusal is a sentence
// already; it goes into What as a whole.
func NewReport(err error) Report {
	each := Each(err)
	report := newReport(each[0])
	report.Code = Code(err)
	for _, further := range each[1:] {
		report.Also = append(report.Also, newReport(further))
	}
	return report
}

func newReport(err error) Report {
	report := Report{Code: Code(err)}
	var coded *Error
	if r := refusal.In(err); r != nil {
		report.What, report.Why, report.Next, report.Rule = r.What, r.Why, r.Next, r.Rule
	} else if errors.As(err, &coded) {
		report.What, report.Next = coded.Cause.Error(), coded.Next
	} else {
		report.What = err.Error()
	}
	var lacking interface{ Right() Right }
	if errors.As(err, &lacking) {
		right := lacking.Right()
		report.Right = &right
	}
	return report
}

// Each takes apart what errors.Join has put together; any other error comes
// back alone. A code that was given to all of them is given to each.
func Each(err error) []error {
	if coded, ok := err.(*Error); ok && coded.Next == "" { //nolint:errorlint // only the outermost can speak for all
		parts := Each(coded.Cause)
		if len(parts) == 1 {
			return []error{err}
		}
		for i, part := range parts {
			parts[i] = recode(part, coded.Code)
		}
		return parts
	}
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // a join that something was added to is one sentence
	if !ok || !isList(err, joined.Unwrap()) {
		return []error{err}
	}
	var parts []error
	for _, part := range joined.Unwrap() {
		parts = append(parts, Each(part)...)
	}
	return parts
}

// isList tells a join from a sentence that was made of several errors.
func isList(err error, parts []error) bool {
	lines := make([]string, len(parts))
	for i, part := range parts {
		lines[i] = part.Error()
	}
	return err.Error() == strings.Join(lines, "\n")
}

func recode(err error, code int) error {
	if coded, ok := err.(*Error); ok { //nolint:errorlint // what is inside stays
		return &Error{Code: code, Cause: coded.Cause, Next: coded.Next}
	}
	return &Error{Code: code, Cause: err}
}

// PrintText writes the error once, for a person; of several, each on a line.
func PrintText(w io.Writer, err error) {
	for _, one := range Each(err) {
		fmt.Fprintf(w, "error: %v\n", one)
	}
}

// PrintJSON writes the error as {"error": {…}}, for a program.
func PrintJSON(w io.Writer, err error) {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	// A failed write to the error stream has nowhere to be told.
	_ = encoder.Encode(struct {
		Error Report `json:"error"`
	}{NewReport(err)})
}
