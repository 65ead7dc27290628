package crash_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/leader"
	"github.com/lockstep-dev/lockstep/internal/member"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// heartbeat of members in these tests. It cannot be much shorter: what a
// heartbeat leaves on the wire has a precision of seconds.
const heartbeat = time.Second

// patience is for how long a chapter may take to come to its end.
const patience = 30 * time.Second

// world is one ClusterSet and the processes that serve it.
type world struct {
	*fleet.Fleet
	east, west *fleet.Controller
	namespace  string
	roles      []*process                           // leader, east, west
	kinds      map[string][]schema.GroupVersionKind // by cluster
	witnesses  map[string]*fleet.Witness
	networks   map[string]types.UID // what a member knows of the other's, by member
	reference  []state              // by chapter, of the run that nothing interrupted
}

// look is how often the objects are looked at while they are waited for: each
// look lists all of them, and the controllers need the processor as well.
const look = 100 * time.Millisecond

// newWorld starts the three roles on two clusters. They take part in elections,
// as a killed process leaves its lease behind.
func newWorld(t *testing.T, l *lab.Lab) *world {
	t.Helper()
	w := &world{}
	for _, name := range []string{"leader", "east", "west"} {
		w.roles = append(w.roles, &process{name: name})
	}
	w.Fleet = fleet.Found(t, l, "crash", func(o *leader.Options) {
		o.Identity, o.Wrap = "the-leader", w.roles[0].wrap
	})
	w.east = w.Candidate(t, "leader", "east", func(o *member.Options) { o.Identity, o.Wrap = "east", w.roles[1].wrap })
	w.west = w.Candidate(t, "west", "west", func(o *member.Options) {
		o.Identity, o.Wrap, o.Mode = "west", w.roles[2].wrap, v1alpha1.EndpointIPTypePodIP
	})
	w.namespace = fleet.Namespace(t, "crash", w.east.Cluster, w.west.Cluster)
	w.kinds = map[string][]schema.GroupVersionKind{}
	for _, c := range []*fleet.Cluster{w.Leader.Cluster, w.west.Cluster} {
		w.kinds[c.Name] = kindsOf(t, c)
	}
	for i, c := range []*fleet.Controller{w.Leader, w.east, w.west} {
		c.Enclose(w.roles[i].enclose)
		c.Start(t)
	}
	return w
}

func (w *world) members() []*fleet.Controller { return []*fleet.Controller{w.east, w.west} }

// tell is one run of the story, with each role killed at its point. The run
// without any is the reference. It returns at which write each role was killed.
func (w *world) tell(t *testing.T, points map[string]point) (killed map[string]string) {
	t.Helper()
	w.clear(t)
	for _, p := range w.roles {
		p.arm(points[p.name])
	}
	for i, chapter := range story {
		chapter.do(t, w)
		chapter.then(t, w)
		if len(points) == 0 {
			w.reference = append(w.reference, w.settle(t))
			continue
		}
		w.await(t, chapter.name, w.reference[i])
	}
	killed = map[string]string{}
	for _, p := range w.roles {
		writes, at, futile := p.report()
		if at != "" {
			killed[p.name] = at
		}
		if len(points) == 0 {
			t.Logf("%s writes %d times", p.name, len(writes))
		}
		for _, write := range futile {
			t.Errorf("%s wrote for nothing: %s", p.name, write)
		}
	}
	for _, witness := range w.witnesses {
		witness.Verdict(t)
	}
	return killed
}

// await waits until the objects are those of the reference.
func (w *world) await(t *testing.T, chapter string, want state) {
	t.Helper()
	fleet.Within(t, patience, fmt.Sprintf("after %q everything is as without a crash", chapter), func() error {
		now, err := w.state(t)
		if err != nil || maps.Equal(now, want) {
			return err
		}
		return errors.New(cmp.Diff(want, now))
	})
}

// settle waits until the objects stay as they are for a heartbeat.
func (w *world) settle(t *testing.T) state {
	t.Helper()
	var last state
	var since time.Time
	fleet.Within(t, patience, "the objects stay as they are", func() error {
		now, err := w.state(t)
		switch {
		case err != nil:
			return err
		case !maps.Equal(now, last):
			last, since = now, time.Now()
		case time.Since(since) > heartbeat:
			return nil
		}
		return errors.New("they change")
	})
	return last
}

func (w *world) state(t *testing.T) (state, error) {
	select {
	case <-t.Context().Done():
	case <-time.After(look):
	}
	now, names := state{}, map[string]string{}
	err := errors.Join(
		now.read(t, w.Leader.Cluster, w.kinds[w.Leader.Name], w.Area, w.east.Namespace, w.namespace),
		now.read(t, w.west.Cluster, w.kinds[w.west.Name], w.west.Namespace, w.namespace),
		serviceIPs(t, w.Leader.Cluster, w.namespace, names),
		serviceIPs(t, w.west.Cluster, w.namespace, names),
	)
	now.nameAddresses(names)
	return now, err
}

// clear removes what users made in an earlier run. Both members have left, so
// nobody else has anything in the Namespace.
func (w *world) clear(t *testing.T) {
	t.Helper()
	w.witnesses, w.networks = nil, nil
	for _, m := range w.members() {
		for _, kind := range []client.Object{&mcsv1beta1.ServiceExport{}, &discoveryv1.EndpointSlice{}} {
			if err := m.DeleteAllOf(t.Context(), kind, client.InNamespace(w.namespace)); err != nil {
				t.Fatal(err)
			}
		}
		var services corev1.ServiceList
		if err := m.List(t.Context(), &services, client.InNamespace(w.namespace)); err != nil {
			t.Fatal(err)
		}
		for i := range services.Items {
			if err := m.Delete(t.Context(), &services.Items[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func keyOf(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }
