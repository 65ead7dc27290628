// Package rule says what a rule is: a value with an id, a weight and its
// reasons, and findings that name the evidence they rest on.
//
// Evidence that was not read is never a pass: a Read is unknown until somebody
// says otherwise, and whoever needs an unknown one reports that as a finding.
package rule

// Rule is what a person can learn about one rule without any cluster at hand.
type Rule struct {
	// ID is stable and is how everybody cites the rule: "UPG-CHK-7".
	ID string `json:"id"`
	// Severity is the heaviest that a finding of the rule can have.
	Severity Severity `json:"severity"`
	// Title is what the rule asks for, in a few words.
	Title string `json:"title"`
	// Why it exists: what happens to those who break it.
	Why string `json:"why"`
	// Remedy is the instruction for most findings; a finding may know a better one.
	Remedy string `json:"remedy"`
	// Source names where the fact comes from: a part of the system that Lockstep
	// shares a ClusterSet with, an id of its known weaknesses, a KEP, an RFC.
	Source string `json:"source"`
}

// Severity is what a finding means for whoever wants to go on.
type Severity int

// From light to heavy.
const (
	// Info: worth knowing.
	Info Severity = iota
	// Warn: going on is possible; something should be looked at.
	Warn
	// Wait: not now; looking again later may give another answer by itself.
	Wait
	// Refuse: do not go on before somebody has changed something.
	Refuse
)

var severities = [...]string{Info: "INFO", Warn: "WARN", Wait: "WAIT", Refuse: "REFUSE"}

// String is the word that users see.
func (s Severity) String() string {
	if s < Info || s > Refuse {
		return "UNKNOWN"
	}
	return severities[s]
}

// MarshalText is String, for JSON and YAML.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
