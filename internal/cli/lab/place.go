package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/lab"
)

// place says which lab is meant.
type place struct {
	name, dir string
}

func (p *place) bind(flags *pflag.FlagSet) {
	flags.StringVar(&p.name, "name", "default", "`name` of the lab; labs of different names run side by side")
	flags.StringVar(&p.dir, "dir", "", "`directory` of the lab, instead of the one that belongs to its name")
}

// directory is where the lab that is meant lives.
func (p *place) directory() (string, error) {
	if p.dir != "" {
		return p.dir, nil
	}
	return Directory(p.name)
}

// Directory is where the lab of a name lives: state, not cache, since it may run
// for days (XDG Base Directory Specification).
func Directory(name string) (string, error) {
	if name == "" || filepath.Base(name) != name || name == "." || name == ".." {
		return "", exit.Usagef("lab name %q cannot be the name of a folder; choose a plain word", name)
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("cannot find a place for the lab: %w; name one with --dir", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "lockstep", "lab", name), nil
}

// open finds the lab.
func (p *place) open() (*lab.Lab, error) {
	dir, err := p.directory()
	if err != nil {
		return nil, err
	}
	l, err := lab.Open(dir)
	if errors.Is(err, lab.ErrNoLab) {
		return nil, &exit.Error{Code: exit.Failed, Cause: fmt.Errorf("%s: there is no lab", dir), Next: "start one with `lockstep lab up" + p.flags() + "`"}
	}
	return l, err
}

// flags are the words a person adds to the next command to mean the same lab.
func (p *place) flags() string {
	switch {
	case p.dir != "":
		return " --dir " + quote(p.dir)
	case p.name != "default":
		return " --name " + quote(p.name)
	}
	return ""
}

// quote makes a shell take a text as one word.
func quote(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-+:@%,=", r))
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
