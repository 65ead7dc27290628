package rule

import (
	"cmp"
	"slices"
)

// Finding is one thing that a check found.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Broken: it does harm already, whether or not anybody goes on.
	Broken bool `json:"broken,omitempty"`
	// Unknown: the check could not look, so this is no pass.
	Unknown bool `json:"unknown,omitempty"`
	// Cluster is the ID of the member it was found in; empty means the leader.
	Cluster string   `json:"cluster,omitempty"`
	Objects []Object `json:"objects,omitempty"`
	// Message is one sentence. The same problem gives the same bytes.
	Message string `json:"message"`
	// Evidence are the facts it rests on, as they were read.
	Evidence []string `json:"evidence,omitempty"`
	// Remedy is one instruction.
	Remedy string `json:"remedy"`
}

// Object is something a finding speaks of.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is Kind namespace/name.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Sort orders findings for people: the heaviest first, and the same set always
// in the same order.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(b.Severity, a.Severity),
			CompareIDs(a.Rule, b.Rule),
			cmp.Compare(a.Cluster, b.Cluster),
			cmp.Compare(a.Message, b.Message),
		)
	})
}

// Heaviest is the severity that decides; ok is false when there is no finding.
func Heaviest(findings []Finding) (heaviest Severity, ok bool) {
	for _, f := range findings {
		heaviest = max(heaviest, f.Severity)
	}
	return heaviest, len(findings) > 0
}

// CompareIDs orders ids as people count: UPG-CHK-9 comes before UPG-CHK-10.
func CompareIDs(a, b string) int {
	for a != "" && b != "" {
		digitsA, digitsB := digits(a), digits(b)
		if digitsA > 0 && digitsB > 0 {
			if c := cmp.Or(cmp.Compare(digitsA, digitsB), cmp.Compare(a[:digitsA], b[:digitsB])); c != 0 {
				return c
			}
			a, b = a[digitsA:], b[digitsB:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits counts the digits a text begins with. Ids have no leading zeros, so
// the longer number is the greater one.
func digits(text string) int {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}
