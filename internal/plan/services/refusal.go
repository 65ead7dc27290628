package services

import "github.com/lockstep-dev/lockstep/internal/plan/refusal"

// Refusal is what a plan leaves out because an object of another owner is in the
// way. It is written for the person who owns one of the two.
type Refusal struct {
	refusal.Refusal
	// Kind and Name (namespace/name) of the object in the way.
	Kind, Name string
}
