// Package cli is the command line: it assembles the tree of commands, runs the
// one that was asked for, and turns its error into a message and an exit code.
//
// Commands are constructors that take the streams and return errors. Nothing
// below this package exits or installs a signal handler for the process.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// Run runs one command line, whose first word is the name the program was called
// by, and returns the exit code of the process. An
// interrupt or a termination cancels the command, which then puts things in
// order; a second one ends the process at once.
func Run(argv []string, streams genericiooptions.IOStreams) int {
	return untilInterrupted(func(ctx context.Context) int { return call(ctx, argv, streams) })
}

func untilInterrupted(run func(context.Context) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // hands the second signal back to the system
	return run(ctx)
}

func call(ctx context.Context, argv []string, streams genericiooptions.IOStreams) int {
	args, plugin := asPlugin(argv)
	if !plugin {
		return execute(ctx, newRoot(streams), args, streams)
	}
	streams.ErrOut = pluginWriter{streams.ErrOut}
	root := newRoot(streams)
	speakAsPlugin(root)
	return execute(ctx, root, args, streams)
}

func execute(ctx context.Context, root *cobra.Command, args []string, streams genericiooptions.IOStreams) int {
	root.SetArgs(args)
	began := wrapBodies(root)

	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exit.Done
	}
	err = finish(ctx, command, *began, err)
	if wantsJSON(args) {
		exit.PrintJSON(streams.ErrOut, err)
	} else {
		exit.PrintText(streams.ErrOut, err)
	}
	return exit.Code(err)
}

// finish gives an error what is the same for all commands: the code of wrong use
// where a call was not understood, and plain words where the user ended it.
func finish(ctx context.Context, command *cobra.Command, began bool, err error) error {
	var told *exit.Error
	switch {
	case errors.As(err, &told), refusal.In(err) != nil:
		return err
	case !began:
		// Flags, arguments and names of commands are checked before the body of
		// a command begins. What fails there is a mistake in the call.
		return &exit.Error{Code: exit.Usage, Cause: err, Next: fmt.Sprintf("see %s --help", command.CommandPath())}
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		// Whoever has begun to write has said itself what is left.
		if err == context.Canceled { //nolint:errorlint // it alone says nothing more
			err = errInterrupted
		}
		return &exit.Error{Code: exit.Failed, Cause: err, Next: "repeat the command"}
	default:
		return err
	}
}

var errInterrupted = errors.New("interrupted")

// wrapBodies makes the result true once the body of any command has begun, and
// silences the libraries where nobody reads a log.
func wrapBodies(command *cobra.Command) *bool {
	began := false
	var wrap func(*cobra.Command)
	wrap = func(command *cobra.Command) {
		if body := command.RunE; body != nil {
			command.RunE = func(command *cobra.Command, args []string) error {
				began = true
				if !logs(command) {
					ctrllog.SetLogger(logr.Discard())
				}
				return body(command, args)
			}
		}
		for _, child := range command.Commands() {
			wrap(child)
		}
	}
	wrap(command)
	return &began
}

// logs tells whether a command writes a log, as the daemons do. Of all others what
// fails is returned; a library that found no logger after half a minute would
// write a stack trace to the screen. Only the first logger of a process counts.
func logs(command *cobra.Command) bool {
	return command.HasParent() && command.Parent().Name() == "run"
}

// wantsJSON looks at the arguments as they were typed: when they cannot be
// parsed, the caller is still a program that reads JSON.
func wantsJSON(args []string) bool {
	for i, arg := range args {
		switch {
		case arg == "--":
			return false
		case arg == "-o" || arg == "--output":
			if i+1 < len(args) && args[i+1] == "json" {
				return true
			}
		case slices.Contains([]string{"-ojson", "-o=json", "--output=json"}, arg):
			return true
		}
	}
	return false
}
