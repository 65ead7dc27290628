package exit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

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
}

// NewReport takes an error apart. An error that is no refusal is a sentence
// already; it goes into What as a whole.
func NewReport(err error) Report {
	report := Report{Code: Code(err)}
	var coded *Error
	if r := refusal.In(err); r != nil {
		report.What, report.Why, report.Next, report.Rule = r.What, r.Why, r.Next, r.Rule
	} else if errors.As(err, &coded) {
		report.What, report.Next = coded.Cause.Error(), coded.Next
	} else {
		report.What = err.Error()
	}
	return report
}

// PrintText writes the error once, for a person.
func PrintText(w io.Writer, err error) {
	fmt.Fprintf(w, "error: %v\n", err)
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
