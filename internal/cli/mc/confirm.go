package mc

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// ask shows what is about to happen and asks for a yes, unless it was given with
// the command. Where nobody could answer, that is wrong use.
func (s *shell) ask(about, question string, yes bool) error {
	fmt.Fprint(s.ErrOut, about)
	if yes {
		return nil
	}
	if file, ok := s.In.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		return exit.Usagef("nobody is there to confirm this; repeat the command with --yes")
	}
	fmt.Fprintf(s.ErrOut, "%s [y/N] ", question)
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	if strings.EqualFold(strings.TrimSpace(answer), "y") || strings.EqualFold(strings.TrimSpace(answer), "yes") {
		return nil
	}
	if err != nil && answer == "" {
		return fmt.Errorf("no answer: %w", err)
	}
	return &exit.Error{Code: exit.Failed, Cause: errors.New("not accepted; nothing was changed")}
}
