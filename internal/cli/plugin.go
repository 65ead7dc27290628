package cli

import (
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// Names under which the program may be called, beside its own. kubectl finds a
// plugin by the first and asks the second what could come next on its command
// line; both may be links to the program.
const (
	pluginName           = "kubectl-lockstep"
	pluginCompletionName = "kubectl_complete-lockstep"
)

// asPlugin tells whether the program was called as a plugin of kubectl, and
// with which arguments.
func asPlugin(argv []string) (args []string, plugin bool) {
	if len(argv) == 0 {
		return nil, false
	}
	switch name := strings.TrimSuffix(filepath.Base(argv[0]), ".exe"); name {
	case pluginName:
		return argv[1:], true
	case pluginCompletionName:
		return append([]string{cobra.ShellCompRequestCmd}, argv[1:]...), true
	default:
		return argv[1:], false
	}
}

// speakAsPlugin makes the help of all commands say what is to be typed.
func speakAsPlugin(root *cobra.Command) {
	root.Use = pluginName
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl lockstep"}
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		command.Short, command.Long, command.Example = pluginText(command.Short), pluginText(command.Long), pluginText(command.Example)
		for _, child := range command.Commands() {
			visit(child)
		}
	}
	visit(root)
}

// ownCommand is one of our commands in a text for people, as it is typed without
// kubectl, or with it.
var ownCommand = regexp.MustCompile(`(kubectl )?\blockstep (mc|lab|demo|run|completion|version|help)\b`)

func pluginText(text string) string {
	return ownCommand.ReplaceAllStringFunc(text, func(found string) string {
		return "kubectl " + strings.TrimPrefix(found, "kubectl ")
	})
}

// pluginWriter makes what is said on the way, and errors, name the commands as
// they are typed.
type pluginWriter struct{ io.Writer }

func (w pluginWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, pluginText(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
