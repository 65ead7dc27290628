package restore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/leader"
	"github.com/lockstep-dev/lockstep/internal/member"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The tests of this package change whole clusters, so they have a lab of their
// own and run one after the other.
var clusters = labtest.Shared(labtest.Options{Clusters: []string{"leader", "east", "west"}})

func TestMain(m *testing.M) { os.Exit(clusters.Main(m)) }

var ports = []corev1.ServicePort{fleet.HTTP}

// pair is a ClusterSet of east and west, whose controllers are started again
// when they end, and take part in elections. East exports addresses of Services,
// west those of Pods.
type pair struct {
	*fleet.Fleet
	east, west *fleet.Controller
	namespace  string
}

func newPair(t *testing.T, name string) pair {
	t.Helper()
	f := fleet.Found(t, clusters.Lab(t), name, func(o *leader.Options) { o.Identity = "leader-of-" + name })
	f.Leader.Supervise(t)
	p := pair{Fleet: f}
	p.east = f.Candidate(t, "east", "east", func(o *member.Options) { o.Identity = "east-of-" + name })
	p.west = f.Candidate(t, "west", "west", func(o *member.Options) {
		o.Identity, o.Mode = "west-of-"+name, v1alpha1.EndpointIPTypePodIP
	})
	p.namespace = fleet.Namespace(t, name, p.east.Cluster, p.west.Cluster)
	for _, m := range p.members() {
		m.Supervise(t)
		m.Join(t)
	}
	return p
}

func (p pair) members() []*fleet.Controller { return []*fleet.Controller{p.east, p.west} }

// export makes and exports Services in one cluster.
func (p pair) export(t *testing.T, from *fleet.Controller, names ...string) {
	t.Helper()
	for _, name := range names {
		from.Service(t, p.namespace, name, ports, addressOf(from, name))
		from.Export(t, p.namespace, name)
	}
}

// addressOf is the first Pod of a Service.
func addressOf(in *fleet.Controller, name string) string {
	third := map[string]int{"east": 1, "west": 2}[in.ID]
	return fmt.Sprintf("10.60.%d.%d", third, int(name[len(name)-1])%100+1)
}

// awaitAll waits until each Service of east is imported in west and the other
// way round.
func (p pair) awaitAll(t *testing.T, fromEast, fromWest []string) {
	t.Helper()
	for _, name := range fromEast {
		p.west.AwaitImport(t, p.namespace, name, map[string][]string{"east": {p.clusterIP(t, name)}})
	}
	for _, name := range fromWest {
		p.east.AwaitImport(t, p.namespace, name, map[string][]string{"west": {addressOf(p.west, name)}})
	}
}

// clusterIP is what east exports of a Service.
func (p pair) clusterIP(t *testing.T, name string) string {
	t.Helper()
	service := &corev1.Service{}
	if err := p.east.Get(t.Context(), types.NamespacedName{Namespace: p.namespace, Name: name}, service); err != nil {
		t.Fatal(err)
	}
	return service.Spec.ClusterIP
}

// awaitBeats waits until the leader has a heartbeat of each member that is
// younger than this call. What a member saw before is not lost unnoticed.
func (p pair) awaitBeats(t *testing.T) {
	t.Helper()
	for _, m := range p.members() {
		before := p.touch(t, m)
		fleet.Eventually(t, "a heartbeat of "+m.ID, func() error {
			if p.touch(t, m) == before {
				return fmt.Errorf("the last is of %s", before)
			}
			return nil
		})
	}
}

func (p pair) touch(t *testing.T, m *fleet.Controller) string {
	t.Helper()
	announce, err := p.Announce(t, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	return announce.Annotations[v1alpha1.AnnotationTouch]
}

// awaitStored waits until a member has stored a heartbeat younger than this
// call, so that its next process can tell a backup of this moment.
func (p pair) awaitStored(t *testing.T, m *fleet.Controller) {
	t.Helper()
	begin := time.Now().Truncate(time.Second)
	fleet.Eventually(t, "member "+m.ID+" stores a heartbeat", func() error {
		stored, err := time.Parse(time.RFC3339, memoryOf(t, m).Touch)
		if err != nil || !stored.After(begin) {
			return fmt.Errorf("the last stored one is of %s (%v)", stored, err)
		}
		return nil
	})
}

func memoryOf(t *testing.T, m *fleet.Controller) v1alpha1.LeaderMemory {
	t.Helper()
	set, err := m.ReadSet(t)
	if err != nil {
		t.Fatal(err)
	}
	return clusterset.ReadMemory(set.Annotations)
}

var (
	errNotSeen = errors.New("the reason was not seen")
	errEnded   = errors.New("the hold has ended")
)

// awaitNoticed waits until a member has said that the leader was restored, even
// if only for a moment.
func awaitNoticed(t *testing.T, m *fleet.Controller, w *fleet.Witness) {
	t.Helper()
	fleet.Eventually(t, m.ID+" notices", func() error {
		if !w.SawReason(clusterset.ReasonLeaderRestored) {
			return errNotSeen
		}
		return nil
	})
}

// awaitHeld waits until a member says that it withdraws nothing.
func awaitHeld(t *testing.T, m *fleet.Controller) {
	t.Helper()
	fleet.Eventually(t, "member "+m.ID+" holds withdrawals", func() error {
		if memoryOf(t, m).HoldSince == nil {
			return fmt.Errorf("no hold is stored")
		}
		return m.CheckCondition(t, "True", clusterset.ReasonLeaderRestored)
	})
}

// awaitTrust waits until a member trusts its leader again.
func awaitTrust(t *testing.T, m *fleet.Controller) {
	t.Helper()
	fleet.Eventually(t, "member "+m.ID+" trusts the leader", func() error {
		if since := memoryOf(t, m).HoldSince; since != nil {
			return fmt.Errorf("it holds withdrawals since %s", since)
		}
		return m.CheckCondition(t, "True", "")
	})
}

// awaitMerged waits until the imports are what a merge from nothing makes of the
// exports: none is missing, and none is left of what nobody exports.
func (p pair) awaitMerged(t *testing.T) {
	t.Helper()
	fleet.Eventually(t, "the imports are what the exports come to", func() error { return p.checkMerged(t.Context()) })
}

func (p pair) checkMerged(ctx context.Context) error {
	var exports v1alpha1.ResourceExportList
	var imports v1alpha1.ResourceImportList
	var announces v1alpha1.MemberClusterAnnounceList
	for _, list := range []client.ObjectList{&exports, &imports, &announces} {
		if err := p.Leader.List(ctx, list, client.InNamespace(p.Area)); err != nil {
			return err
		}
	}
	present := map[string]*v1alpha1.ResourceImport{}
	for i := range imports.Items {
		present[imports.Items[i].Name] = &imports.Items[i]
	}
	peers, wire := clusterset.Peers(announces.Items)
	tuples := sets.New[types.NamespacedName]()
	for _, e := range exports.Items {
		tuples.Insert(types.NamespacedName{Namespace: e.Spec.Namespace, Name: e.Spec.Name})
	}
	for tuple := range tuples {
		seen := services.MergeObserved{Area: p.Area, Tuple: tuple, Peers: peers, Wire: wire}
		for i := range exports.Items {
			if exports.Items[i].Spec.Kind == v1alpha1.KindService {
				seen.Services = append(seen.Services, &exports.Items[i])
			}
		}
		wanted := services.Merge(seen).Import.Desired
		if wanted == nil {
			continue
		}
		found := present[wanted.Name]
		if found == nil {
			return fmt.Errorf("import %q is missing", wanted.Name)
		}
		wanted.ObjectMeta = found.ObjectMeta
		seen.Import = found
		if change := services.Merge(seen).Import; !change.IsZero() {
			return fmt.Errorf("import %q is not what its exports come to", found.Name)
		}
		delete(present, found.Name)
	}
	for name := range present {
		return fmt.Errorf("nobody exports %q", name)
	}
	return nil
}

// restoreLeader puts the leader cluster back to a snapshot.
func (p pair) restoreLeader(t *testing.T, snapshot string, bump uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := p.Leader.Lab.Restore(ctx, snapshot, bump); err != nil {
		t.Fatal(err)
	}
}

func (p pair) snapshot(t *testing.T, of *fleet.Controller, name string) {
	t.Helper()
	if err := of.Lab.Snapshot(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}
