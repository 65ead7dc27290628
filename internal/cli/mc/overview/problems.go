package overview

import (
	"cmp"
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// readProblems are about the reading itself.
func readProblems(c Cluster) []Problem {
	if c.Failure != "" {
		return []Problem{{
			What:  fmt.Sprintf("cluster behind context %q cannot be read", c.Context),
			Why:   c.Failure,
			Next:  cmp.Or(c.Next, grant(c.Right), "check that its API server can be reached from here, and the credentials of the context"),
			Right: c.Right,
		}}
	}
	var problems []Problem
	for _, gap := range c.Gaps {
		problems = append(problems, Problem{
			What:  fmt.Sprintf("cluster behind context %q was read in part", c.Context),
			Why:   gap.Why,
			Next:  cmp.Or(grant(gap.Right), "ask an administrator of that cluster for the right to read it"),
			Right: gap.Right,
		})
	}
	return problems
}

// grant is what to do about a right that is missing; "" when none is.
func grant(right exit.Right) string {
	if right == (exit.Right{}) {
		return ""
	}
	return fmt.Sprintf("have the right to %s granted to the user of that context", right)
}
