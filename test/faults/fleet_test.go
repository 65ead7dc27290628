package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/member"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// The tests of this package run one after the other in one ClusterSet, which
// each of them leaves as it found it.
var clusters = labtest.Shared(labtest.Options{Clusters: []string{"leader", "east", "west"}})

func TestMain(m *testing.M) { os.Exit(clusters.Main(m, standing.Stop)) }

const namespace = "faults"

var ports = []corev1.ServicePort{fleet.HTTP}

// assembly is the ClusterSet. The hub lives in the leader's cluster. Faults hit
// east; hub and west are the bystanders.
type assembly struct {
	*fleet.Fleet
	east, west, hub *fleet.Controller
}

var standing = fleet.Stand(func(t testing.TB, l *lab.Lab) assembly {
	a := assembly{Fleet: fleet.New(t, l, "faults")}
	a.east = a.Candidate(t, "east", "east", podIPs)
	a.west = a.Candidate(t, "west", "west", podIPs)
	a.hub = a.Candidate(t, "leader", "hub", podIPs)
	for _, m := range a.members() {
		fleet.Namespace(t, namespace, m.Cluster)
		m.Start(t)
		m.Request(t)
	}
	for i, m := range a.members() {
		m.AwaitReady(t)
		offer(t, m, kept(m), address(i, 1))
	}
	for _, m := range a.members() {
		a.awaitKept(t, m)
	}
	return a
})

// podIPs makes a member export addresses that no API server chose.
func podIPs(o *member.Options) { o.Mode = v1alpha1.EndpointIPTypePodIP }

func (a assembly) members() []*fleet.Controller {
	return []*fleet.Controller{a.east, a.west, a.hub}
}

// kept is the Service of a member that no test touches.
func kept(m *fleet.Controller) string { return "kept-" + m.ID }

func address(third, last int) string { return fmt.Sprintf("10.70.%d.%d", third, last) }

func (a assembly) awaitKept(t testing.TB, in *fleet.Controller) {
	t.Helper()
	for i, m := range a.members() {
		in.AwaitImport(t, namespace, kept(m), map[string][]string{m.ID: {address(i, 1)}})
	}
}

func offer(t testing.TB, m *fleet.Controller, name string, addresses ...string) {
	t.Helper()
	m.Service(t, namespace, name, ports, addresses...)
	m.Export(t, namespace, name)
}

// begin gives a test the ClusterSet, and watches in every member that nothing
// which no test touches is lost.
func begin(t *testing.T) assembly {
	t.Helper()
	a := standing.Get(t, clusters.Lab(t))
	for _, m := range a.members() {
		m.AwaitReady(t)
		a.awaitKept(t, m)
		w := m.Watch(t, namespace, kept(a.east), kept(a.west), kept(a.hub))
		t.Cleanup(func() { w.Verdict(t) })
	}
	return a
}

// change is what users do in one member while something is broken: one export is
// new, one has other endpoints, one is gone.
type change struct {
	from               *fleet.Controller
	fresh, moved, gone string
}

// prepare makes what is changed later, in a member, and waits until others have it.
func prepare(t *testing.T, from *fleet.Controller, others ...*fleet.Controller) change {
	t.Helper()
	c := change{from: from, fresh: from.ID + "-fresh", moved: from.ID + "-moved", gone: from.ID + "-gone"}
	for _, name := range []string{c.moved, c.gone} {
		offer(t, from, name, "10.71.0.1")
		for _, m := range others {
			m.AwaitImport(t, namespace, name, map[string][]string{from.ID: {"10.71.0.1"}})
		}
	}
	t.Cleanup(func() { c.clear(t) })
	return c
}

func (c change) make(t *testing.T) {
	t.Helper()
	offer(t, c.from, c.fresh, "10.71.0.2")
	c.from.Endpoints(t, namespace, c.moved, ports, "10.71.0.3")
	c.from.Unexport(t, namespace, c.gone)
}

// arrived waits until a member shows the change.
func (c change) arrived(t *testing.T, in ...*fleet.Controller) {
	t.Helper()
	for _, m := range in {
		m.AwaitImport(t, namespace, c.fresh, map[string][]string{c.from.ID: {"10.71.0.2"}})
		m.AwaitImport(t, namespace, c.moved, map[string][]string{c.from.ID: {"10.71.0.3"}})
		m.AwaitNoImport(t, namespace, c.gone)
	}
}

// unseen tells that a member shows the world of before the change.
func (c change) unseen(t *testing.T, in *fleet.Controller) {
	t.Helper()
	for name, want := range map[string]bool{c.fresh: false, c.moved: true, c.gone: true} {
		seen, err := in.Import(t, namespace, name)
		if err != nil || (seen.Import != nil) != want {
			t.Errorf("%s in %s: import %v (%v), want %v", name, in.ID, seen.Import != nil, err, want)
		}
	}
}

// clear removes what the change is about, so that the next test finds nothing.
func (c change) clear(t *testing.T) {
	ctx := context.Background() // a test's own ends before its cleanups
	for _, name := range []string{c.fresh, c.moved, c.gone} {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
		for _, object := range []client.Object{&mcsv1beta1.ServiceExport{ObjectMeta: meta}, &corev1.Service{ObjectMeta: meta}} {
			if err := client.IgnoreNotFound(c.from.Delete(ctx, object)); err != nil {
				t.Error(err)
			}
		}
	}
}

// says waits for the condition of a member's ClusterSet.
func says(t *testing.T, m *fleet.Controller, reason string) {
	t.Helper()
	fleet.Eventually(t, m.ID+" says "+reason, func() error { return m.CheckCondition(t, "False", reason) })
}

// counted waits until the leader says of a member that it is connected, or not.
func (a assembly) counted(t *testing.T, id, status string) {
	t.Helper()
	fleet.Eventually(t, fmt.Sprintf("the leader says of %s Ready=%s", id, status), func() error {
		set, err := a.Leader.ReadSet(t)
		if err != nil {
			return err
		}
		for _, c := range set.Status.ClusterStatuses {
			if c.ClusterID == id && len(c.Conditions) > 0 {
				if got := string(c.Conditions[0].Status); got != status {
					return fmt.Errorf("it says %s", got)
				}
				return nil
			}
		}
		return errors.New("it does not know it")
	})
}
