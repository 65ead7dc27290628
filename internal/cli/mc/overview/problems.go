package overview

import (
	"cmp"
	"fmt"
)

// readProblems are about the reading itself.
func readProblems(c Cluster) []Problem {
	if c.Failure != "" {
		return []Problem{{
			What: fmt.Sprintf("cluster behind context %q cannot be read", c.Context),
			Why:  c.Failure,
			Next: cmp.Or(c.Next, "check that its API server can be reached from here, and the credentials of the context"),
		}}
	}
	var problems []Problem
	for _, gap := range c.Gaps {
		problems = append(problems, Problem{
			What: fmt.Sprintf("cluster behind context %q was read in part", c.Context),
			Why:  gap,
			Next: "ask an administrator of that cluster for the right to read it",
		})
	}
	return problems
}
