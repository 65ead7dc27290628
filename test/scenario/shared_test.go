package scenario_test

import (
	"context"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/member"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// A member controller serves its whole cluster, so two fleets cannot use one
// member cluster at the same time. The tests of this package come in two kinds:
//
//   - One that restarts, leaves or cuts something makes a fleet of its own
//     (fleet.New). It is not parallel. Go runs all of these first, one by one.
//   - One that only needs Services calls together, which makes it parallel and
//     gives it the standing fleet. Go starts these when the others are done,
//     so the standing fleet begins when no other is left. They run side by
//     side, each in a Namespace of its own.
//
// A second lab for the second kind would cost more than it saves: starting
// clusters and fleets is what keeps the processors busy, the tests themselves
// wait most of the time.
var clusters = labtest.Shared(labtest.Options{Clusters: []string{"leader", "east", "west"}})

func TestMain(m *testing.M) {
	if err := detectMutations(); err != nil {
		panic(err)
	}
	// Tests of the standing fleet wait for clusters, not for processors.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(clusters.Main(m, standing.Stop))
}

var ports = []corev1.ServicePort{fleet.HTTP}

// assembly is the standing fleet: a mixed set, so that both representations of
// endpoints are in the common area. East exports addresses of Services, west
// those of Pods, harbor is an upstream member that a test plays.
type assembly struct {
	*fleet.Fleet
	east, west *fleet.Controller
	harbor     *fleet.Upstream
}

var standing = fleet.Stand(func(t testing.TB, l *lab.Lab) assembly {
	f := fleet.New(t, l, "standing")
	a := assembly{Fleet: f, harbor: f.Upstream(t, "harbor")}
	a.east = f.Candidate(t, "east", "east")
	a.west = f.Candidate(t, "west", "west", func(o *member.Options) { o.Mode = v1alpha1.EndpointIPTypePodIP })
	for _, m := range []*fleet.Controller{a.east, a.west} {
		m.Start(t)
		m.Request(t)
	}
	for _, m := range []*fleet.Controller{a.east, a.west} {
		m.AwaitReady(t)
	}
	return a
})

// together makes a test one of those that share the standing fleet, and gives it
// a Namespace in both member clusters.
func together(t *testing.T) (assembly, string) {
	t.Helper()
	t.Parallel()
	a := standing.Get(t, clusters.Lab(t))
	return a, namespaceOf(t, a.east.Cluster, a.west.Cluster)
}

// namespaceOf makes a Namespace named after the test in some clusters, whose
// exports go with the test: a later fleet would publish them as well.
func namespaceOf(t *testing.T, in ...*fleet.Cluster) string {
	t.Helper()
	ns := fleet.Namespace(t, nameOf(t), in...)
	t.Cleanup(func() {
		for _, c := range in {
			if err := c.DeleteAllOf(context.Background(), &mcsv1beta1.ServiceExport{}, client.InNamespace(ns)); err != nil {
				t.Errorf("remove the exports of %q in %q: %v", ns, c.Name, err)
			}
		}
	})
	return ns
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// nameOf a test as a name of objects: short, because names are joined to others
// that end at 63 characters.
func nameOf(t *testing.T) string {
	name := notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-")
	return strings.Trim(name[:min(len(name), 32)], "-")
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}
