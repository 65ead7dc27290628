package mc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

func newExport(shell *shell) *cobra.Command {
	return newExportVerb(shell, Export, &cobra.Command{
		Use:   "export [svc/]NAME -n NAMESPACE [--importers A,B]",
		Short: "Share a Service of this cluster with the ClusterSet",
		Long: `Share a Service of this cluster with the ClusterSet: make its ServiceExport, and wait
until the leader has merged it and the Service is there to be used. Give contexts of
other members to hear of each when it has it.

What cannot be shared is refused before anything is written: a Service that does not
exist, is of type ExternalName or was itself imported, and Services of Kubernetes.`,
		Example: `  lockstep mc export cart -n shop --context east
  lockstep mc export svc/cart -n shop --context east --importers west,north`,
	})
}

func newUnexport(shell *shell) *cobra.Command {
	return newExportVerb(shell, Unexport, &cobra.Command{
		Use:   "unexport [svc/]NAME -n NAMESPACE [--importers A,B]",
		Short: "Stop sharing a Service of this cluster",
		Long: `Stop sharing a Service of this cluster: delete its ServiceExport, and wait until what
this cluster contributed has gone. A Service that other clusters export as well stays
imported from those.`,
		Example: `  lockstep mc unexport cart -n shop --context east`,
	})
}

func newExportVerb(shell *shell, verb func(context.Context, client.Client, ExportOptions) (ExportResult, error), command *cobra.Command) *cobra.Command {
	opts := ExportOptions{Wait: time.Minute}
	var importers []string
	command.Args = argument("the NAME of a Service", false)
	flags := command.Flags()
	bindNamespace(flags, &opts.Namespace, "", "`namespace` of the Service")
	flags.StringSliceVar(&importers, "importers", nil, "kubeconfig `contexts` of other members, to look whether they have it")
	bindWait(flags, &opts.Wait, "the leader, and for each importing cluster")
	shell.bindOutcomes(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		if err := need(command, "namespace"); err != nil {
			return err
		}
		var err error
		if opts.Name, err = serviceName(args[0]); err != nil {
			return err
		}
		connection, err := shell.connect()
		if err != nil {
			return err
		}
		if opts.Importers, err = shell.importers(connection, importers); err != nil {
			return err
		}
		opts.Progress = shell.progress()
		result, err := verb(command.Context(), connection, opts)
		shell.print(result.Touched...)
		if result.Conflict != "" {
			fmt.Fprintf(shell.ErrOut, "warning: %s\n", result.Conflict)
		}
		return err
	}
	return command
}

// serviceName takes off the kind, which kubectl puts before names.
func serviceName(argument string) (string, error) {
	kind, name, ok := strings.Cut(argument, "/")
	switch {
	case !ok && kind != "":
		return kind, nil
	case ok && name != "" && slices.Contains([]string{"svc", "service", "services"}, strings.ToLower(kind)):
		return name, nil
	default:
		return "", exit.Usagef("%q names no Service; give NAME or svc/NAME", argument)
	}
}

// importers connects to other members. Two contexts that lead to one API server
// are one cluster, and a mistake.
func (s *shell) importers(own Connection, contexts []string) ([]Importer, error) {
	if len(contexts) > 0 { // a Pod without a kubeconfig has none, and needs none
		if err := s.access.Known(contexts); err != nil {
			return nil, err
		}
	}
	var importers []Importer
	known := map[string]string{own.Server: s.access.name()}
	for _, name := range contexts {
		access := s.access
		access.Context = name
		connection, err := access.Connect(s.ErrOut, 0)
		if err != nil {
			return nil, err
		}
		if other, twice := known[connection.Server]; twice {
			return nil, exit.Usagef("contexts %q and %q lead to one API server, %s; name each other member once with --importers", other, name, connection.Server)
		}
		known[connection.Server] = name
		importers = append(importers, Importer{Name: name, Reader: connection})
	}
	return importers, nil
}
