package lab

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/lab"
)

func newStatus(shell *shell) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "status",
		Short: "Show what runs",
		Args:  arguments(),
	}
	command.Flags().StringVarP(&output, "output", "o", "", "`format`: json or yaml instead of tables")
	command.RunE = func(command *cobra.Command, _ []string) error {
		print, err := printer(output)
		if err != nil {
			return err
		}
		l, err := shell.place.open()
		if err != nil {
			return err
		}
		return print(shell.Out, overviewOf(command.Context(), l))
	}
	return command
}

// overview is the lab as this command shows it.
type overview struct {
	Dir        string       `json:"dir"`
	Kubeconfig string       `json:"kubeconfig"`
	Ready      bool         `json:"ready"`
	Clusters   []lab.Status `json:"clusters"`
}

// overviewOf asks all hosts at once. One that does not answer is shown with
// its components not ready, and why.
func overviewOf(ctx context.Context, l *lab.Lab) overview {
	names := l.ClusterNames()
	o := overview{Dir: l.Dir(), Kubeconfig: l.Kubeconfig(), Ready: true, Clusters: make([]lab.Status, len(names))}
	var asking sync.WaitGroup
	for i, name := range names {
		asking.Go(func() { o.Clusters[i] = statusOf(ctx, l, name) })
	}
	asking.Wait()
	for _, status := range o.Clusters {
		o.Ready = o.Ready && status.Ready()
	}
	return o
}

func statusOf(ctx context.Context, l *lab.Lab, name string) lab.Status {
	c, err := l.Cluster(name)
	if err != nil {
		return lab.Status{Cluster: name}
	}
	status, err := c.Status(ctx)
	if err != nil {
		return c.Unreachable(err)
	}
	return status
}

// tables are the overview for a person.
func (o overview) tables() []table {
	components := table{header: []string{"CLUSTER", "COMPONENT", "READY", "PID", "RESTARTS", "REASON"}}
	pods := table{header: []string{"CLUSTER", "NAMESPACE", "POD", "CONTAINER", "PID", "RESTARTS"}}
	links := table{header: []string{"FROM", "TO", "ADDRESS", "LINK"}}
	for _, c := range o.Clusters {
		for _, p := range c.Components {
			components.add(c.Cluster, p.Name, yes(p.Ready), pid(p.Pid), strconv.Itoa(p.Restarts), cmp.Or(firstLine(p.Reason), "-"))
		}
		for _, p := range c.Pods {
			pods.add(c.Cluster, p.Namespace, p.Pod, p.Container, pid(p.Pid), strconv.Itoa(p.Restarts))
		}
		for _, l := range c.Links {
			links.add(l.From, c.Cluster, l.Server, l.Condition.String())
		}
	}
	return []table{components, links, pods}
}

func yes(ready bool) string {
	if ready {
		return "yes"
	}
	return "no"
}

func pid(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
