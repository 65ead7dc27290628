package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Command says what to start.
type Command struct {
	// Name is how errors call the process. Empty means the base name of Path.
	Name string
	// Path is the program; it is not looked up in a search path.
	Path string
	Args []string
	// Env is the whole environment: nothing is inherited, because a variable
	// such as ETCD_NAME in the user's shell would silently change a child.
	Env []string
	// Dir is the working directory. Empty means the parent's.
	Dir string
	// Log is the file to which both output streams are appended. It may be
	// a file that an earlier process wrote. Empty discards the output.
	Log string
	// Files are open in the child as descriptors 3, 4, …
	Files []*os.File
	// Detach starts the child in a session of its own and lets it outlive
	// the parent.
	Detach bool
}

func (c Command) name() string {
	if c.Name != "" {
		return c.Name
	}
	return filepath.Base(c.Path)
}

// String is the command as a person would type it.
func (c Command) String() string {
	words := make([]string, 0, 1+len(c.Args))
	for _, word := range append([]string{c.Path}, c.Args...) {
		if word == "" || strings.ContainsAny(word, " \t\n'\"$&|;<>()*?\\`") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// build returns the command ready to start, and the log file, which the
// caller closes when the child has its copy of the descriptor.
func (c Command) build() (*exec.Cmd, *os.File, error) {
	cmd := &exec.Cmd{
		Path:        c.Path,
		Args:        append([]string{c.Path}, c.Args...),
		Env:         append([]string{}, c.Env...), // not nil: nil would inherit
		Dir:         c.Dir,
		ExtraFiles:  c.Files,
		SysProcAttr: attributes(c.Detach),
	}
	if c.Log == "" {
		return cmd, nil, nil
	}
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, log, nil
}
