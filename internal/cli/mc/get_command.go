package mc

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

func newGet(shell *shell) *cobra.Command {
	command := group("get", "Show the objects of a ClusterSet", "")
	exports := newGetResource(shell, resourceExports())
	exports.command.Flags().StringVar(&exports.clusterID, "cluster-id", "", "only what the cluster of this `ID` exports")
	command.AddCommand(
		newGetResource(shell, clusterSets()).command,
		exports.command,
		newGetResource(shell, resourceImports()).command,
		newGetResource(shell, memberTokens()).command,
		newGetJoinConfig(shell),
	)
	return command
}

// getResource is one "mc get KIND".
type getResource struct {
	query
	resource
	shell     *shell
	command   *cobra.Command
	format    string
	clusterID string
}

func newGetResource(shell *shell, kind resource) *getResource {
	g := &getResource{resource: kind, shell: shell}
	g.command = &cobra.Command{
		Use: kind.use + " [NAME]", Aliases: kind.aliases, Short: kind.short,
		Args: argument("NAME", true),
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 1 {
				g.name = args[0]
			}
			return g.run(command.Context())
		},
	}
	flags := g.command.Flags()
	bindNamespace(flags, &g.namespace, "default", "`namespace` to look in")
	flags.BoolVarP(&g.allNamespaces, "all-namespaces", "A", false, "look in all Namespaces")
	bindOutput(g.command, &g.format, "json", "yaml", "wide", "name")
	return g
}

func (g *getResource) run(ctx context.Context) error {
	if g.name != "" && g.allNamespaces {
		return exit.Usagef("a NAME and -A exclude each other: one name can be in many Namespaces; give -n NAMESPACE")
	}
	if g.namespace == "" && !g.allNamespaces {
		return exit.Usagef("-n is empty; give -n NAMESPACE, or -A for all")
	}
	if g.clusterID != "" {
		g.labels = map[string]string{v1alpha1.LabelSourceClusterID: g.clusterID}
	}
	connection, err := g.shell.connect()
	if err != nil {
		return err
	}
	found, err := g.find(ctx, connection, g.query)
	if err != nil {
		return err
	}
	if len(found) == 0 && (g.format == "" || g.format == "wide") {
		fmt.Fprintf(g.shell.ErrOut, "no %s %s\n", g.plural(), g.where())
		return nil
	}
	return g.print(g.shell.Out, connection, g.format, found, g.name != "")
}
