package scenario_test

import (
	"errors"
	"fmt"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// bystander is a Service that has nothing to do with what is bad in a test, and
// has to flow all the while. Its exporter publishes addresses of Pods.
type bystander struct {
	from, to *fleet.Controller
	ns       string
	n        int
}

func standsBy(t *testing.T, ns string, from, to *fleet.Controller) *bystander {
	t.Helper()
	b := &bystander{from: from, to: to, ns: ns, n: 1}
	from.Service(t, ns, "bystander", ports, b.address())
	from.Export(t, ns, "bystander")
	to.AwaitImport(t, ns, "bystander", b.ready())
	return b
}

func (b *bystander) address() string { return fmt.Sprintf("10.57.%d.%d", b.n/200, b.n%200+1) }

func (b *bystander) ready() map[string][]string {
	return map[string][]string{b.from.ID: {b.address()}}
}

// flows changes its endpoint and waits until that has arrived.
func (b *bystander) flows(t *testing.T) {
	t.Helper()
	b.n++
	b.from.Endpoints(t, b.ns, "bystander", ports, b.address())
	b.to.AwaitImport(t, b.ns, "bystander", b.ready())
}

// awaitProblem waits until the ClusterSet of a member tells of a problem, and
// that the message names all that a person has to know.
func awaitProblem(t *testing.T, m *fleet.Controller, reason string, says ...string) {
	t.Helper()
	fleet.Eventually(t, m.ID+" tells its problem", func() error {
		set, err := m.ReadSet(t)
		if err != nil {
			return err
		}
		if len(set.Status.Conditions) == 0 {
			return errors.New("it has no condition")
		}
		c := set.Status.Conditions[0]
		if c.Status != "False" || c.Reason != reason {
			return fmt.Errorf("it is Ready=%s, reason %q: %s", c.Status, c.Reason, c.Message)
		}
		return mentions(c.Message, says...)
	})
}

// awaitEvent waits for an Event about an object.
func awaitEvent(t *testing.T, c *fleet.Cluster, ns, kind, name, reason string, says ...string) {
	t.Helper()
	fleet.Eventually(t, fmt.Sprintf("an Event %s about %s %q", reason, kind, name), func() error {
		var list eventsv1.EventList
		if err := c.List(t.Context(), &list, client.InNamespace(ns)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.Kind == kind && e.Regarding.Name == name && e.Reason == reason {
				return mentions(e.Note, says...)
			}
		}
		return fmt.Errorf("there are %d others", len(list.Items))
	})
}
