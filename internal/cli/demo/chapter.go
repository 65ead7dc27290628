package demo

import (
	"strings"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// chapter is one tour with clusters of its own.
type chapter struct {
	name     string
	clusters []string
	// next is a command for who keeps the clusters.
	next  string
	steps func() []step
}

func chapters() []chapter {
	return []chapter{
		{"share", clusterNames, "lockstep mc status --contexts leader,east,west", share},
		{"migrate", clusterNames, "lockstep mc status --contexts leader,east,west", migrate},
	}
}

func names(all []chapter) (names []string) {
	for _, c := range all {
		names = append(names, c.name)
	}
	return names
}

// choose the chapters that were asked for; the first when none was.
func choose(args []string) ([]chapter, error) {
	all := chapters()
	switch {
	case len(args) == 0:
		return all[:1], nil
	case args[0] == "all":
		return all, nil
	}
	for _, c := range all {
		if c.name == args[0] {
			return []chapter{c}, nil
		}
	}
	return nil, exit.Usagef("there is no chapter %q; the chapters are: %s", args[0], strings.Join(names(all), ", "))
}
