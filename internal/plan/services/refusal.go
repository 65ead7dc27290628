package services

import "fmt"

// Refusal says what a plan leaves out because an object of another owner is in
// the way. It is written for the person who owns one of the two.
type Refusal struct {
	// Kind and Name (namespace/name) of the object in the way.
	Kind, Name string
	// What was wanted, Why it is not done, and what to do Next.
	What, Why, Next string
	// Rule is the id of the rule that forbids it.
	Rule string
}

func (r Refusal) String() string {
	return fmt.Sprintf("%s: %s; %s (%s)", r.What, r.Why, r.Next, r.Rule)
}
