package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/upgrade"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

var clusters = labtest.Shared(labtest.Options{Clusters: []string{"leader"}})

var errDead = errors.New("this driver was killed")

// mortal kills a driver at one of its writes: before it leaves, or when it is
// done and its answer is lost. A dead one sends nothing more.
type mortal struct {
	mu     sync.Mutex
	at     int // counted from 1; 0 is nowhere
	before bool
	writes []string
	dead   bool
	killed string
}

func (m *mortal) wrap(next http.RoundTripper) http.RoundTripper { return mortalTripper{next, m} }

type mortalTripper struct {
	next http.RoundTripper
	*mortal
}

// RoundTrip implements http.RoundTripper.
func (m mortalTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	last, err := m.pass(request)
	if err != nil {
		return nil, err
	}
	response, err := m.next.RoundTrip(request)
	if last {
		if err == nil {
			response.Body.Close()
		}
		return nil, errDead
	}
	return response, err
}

func (m *mortal) pass(request *http.Request) (last bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false, errDead
	}
	if !isWrite(request) {
		return false, nil
	}
	m.writes = append(m.writes, request.Method+" "+request.URL.Path)
	if len(m.writes) != m.at {
		return false, nil
	}
	m.dead, m.killed = true, request.Method+" "+request.URL.Path
	if m.before {
		return false, errDead
	}
	return true, nil
}

// isWrite tells what changes something: not what only asks, nor the Lease, which a
// clock renews.
func isWrite(request *http.Request) bool {
	path := request.URL.Path
	return request.Method != http.MethodGet && !request.URL.Query().Has("dryRun") &&
		!strings.HasSuffix(path, "reviews") && !strings.Contains(path, "/leases")
}

// scene is one common area with members that the test plays.
type scene struct {
	leader  *fleet.Cluster
	players []*player
}

func newScene(t *testing.T, members ...string) *scene {
	s := &scene{leader: fleet.Open(t, clusters.Lab(t), "leader")}
	s.leader.Install(t, config.Leader, config.Options{Namespace: area}, "Deployment", "PodDisruptionBudget")
	s.leader.Install(t, config.Member, config.Options{Namespace: "crash-kinds"}, "Deployment", "PodDisruptionBudget")
	s.leader.Put(t, &v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: "crash", Namespace: area},
		Spec:       v1alpha2.ClusterSetSpec{ClusterID: "leader", Namespace: area, Leaders: []v1alpha2.LeaderCluster{{ClusterID: "leader"}}},
	})
	installKind(t, clusterOf(t, s.leader.Config))
	for _, id := range members {
		s.players = append(s.players, &player{id: id, cluster: s.leader, known: map[string]client.Client{}})
	}
	return s
}

// begin brings everything back to where the story begins.
func (s *scene) begin(t *testing.T) {
	t.Helper()
	in := client.InNamespace(area)
	for _, obj := range []client.Object{&fleetv1alpha1.UpgradeRun{}, &v1alpha1.MemberClusterAnnounce{}, &coordinationv1.Lease{}} {
		if err := s.leader.DeleteAllOf(t.Context(), obj, in); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range s.players {
		for _, obj := range []client.Object{&corev1.Secret{}, &rbacv1.RoleBinding{}, &corev1.ServiceAccount{}} {
			obj.SetName(p.id + "-token")
			obj.SetNamespace(area)
			s.leader.Discard(t, obj)
		}
	}
	token := s.leader.SharedCredential(t, area)
	for _, p := range s.players {
		p.begin(t, token)
	}
	run := &fleetv1alpha1.UpgradeRun{ObjectMeta: metav1.ObjectMeta{Name: "crash", Namespace: area}}
	run.Spec.ClusterSet = &fleetv1alpha1.ClusterSetTarget{Name: "crash"}
	run.Spec.Policy.MaxConcurrent = int32(len(s.players))
	for _, p := range s.players {
		run.Spec.ClusterSet.Members = append(run.Spec.ClusterSet.Members, fleetv1alpha1.MemberAccess{Context: p.id, Namespace: p.namespace()})
	}
	s.leader.Make(t, run)
}

// tell plays the story; the driver dies as m says and is started again.
func (s *scene) tell(t *testing.T, m *mortal) string {
	t.Helper()
	s.begin(t)
	ctx, cancel := context.WithTimeout(t.Context(), wide)
	var all sync.WaitGroup
	for _, p := range s.players {
		all.Go(func() { p.live(ctx) })
	}
	defer func() { cancel(); all.Wait() }()
	for _, p := range s.players { // nobody is new to the leader
		fleet.Eventually(t, "it beats", p.check)
	}
	for life := 0; ; life++ {
		decision, err := s.drive(ctx, t, m, life)
		if err == nil && decision.Phase == rollout.Done {
			break
		}
		if life > 1 || ctx.Err() != nil {
			t.Fatalf("not done: %v, %s", err, decision.Message())
		}
	}
	for _, p := range s.players {
		if err := p.check(); err != nil {
			t.Error(err)
		}
	}
	return s.state(t)
}

// drive is one life of the driver. It ends with the write it dies at.
func (s *scene) drive(parent context.Context, t *testing.T, m *mortal, life int) (rollout.Decision, error) {
	t.Helper()
	access := s.leader.Config
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	if life == 0 {
		access = rest.CopyConfig(access)
		access.Wrap(m.wrap)
	}
	c := clusterOf(t, access)
	d := &upgrade.Driver{
		Run: client.ObjectKey{Namespace: area, Name: "crash"}, Leader: c, Connect: func(string) (upgrade.Cluster, error) { return c, nil },
		Identity: "the test", Every: 30 * time.Millisecond,
		Log: func(err error) {
			if errors.Is(err, errDead) {
				cancel(errDead)
			}
		},
	}
	return d.Drive(ctx)
}

// state is what has to be the same in the end, wherever the driver died.
func (s *scene) state(t *testing.T) string {
	t.Helper()
	var lines []string
	for kind, list := range map[string]client.ObjectList{"account": &corev1.ServiceAccountList{}, "binding": &rbacv1.RoleBindingList{}, "secret": &corev1.SecretList{}} {
		if err := s.leader.List(t.Context(), list, client.InNamespace(area)); err != nil {
			t.Fatal(err)
		}
		_ = apply.Each(list, func(o client.Object) error {
			lines = append(lines, fmt.Sprintf("%s %s %s", kind, o.GetName(), o.GetAnnotations()[v1alpha1.AnnotationClusterID]))
			return nil
		})
	}
	for _, p := range s.players {
		var set v1alpha2.ClusterSet
		var secrets corev1.SecretList
		if err := errors.Join(s.leader.Get(t.Context(), client.ObjectKey{Namespace: p.namespace(), Name: "crash"}, &set),
			s.leader.List(t.Context(), &secrets, client.InNamespace(p.namespace()))); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, p.id+" uses "+set.Spec.Leaders[0].Secret)
		for _, secret := range secrets.Items {
			lines = append(lines, p.id+" has "+secret.Name)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Whichever write the driver dies at, another one comes to the same end, and no
// member is denied a write on the way.
//
// covers: WK-2, WK-4
func TestTheDriverIsKilledAtEachOfItsWrites(t *testing.T) {
	s := newScene(t, "east", "mid", "north", "south", "west")
	undisturbed := &mortal{}
	want := s.tell(t, undisturbed)
	if t.Failed() {
		return
	}
	t.Logf("%d writes:\n%s\nend:\n%s", len(undisturbed.writes), strings.Join(undisturbed.writes, "\n"), want)
	killed := 0
	for n := range len(undisturbed.writes) {
		if !chosen(n, len(undisturbed.writes)) {
			continue
		}
		for _, before := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d before %v", n+1, before), func(t *testing.T) {
				m := &mortal{at: n + 1, before: before}
				if got := s.tell(t, m); got != want {
					t.Errorf("killed at %s it ends as\n%s\nundisturbed as\n%s", m.killed, got, want)
				}
				if m.killed != "" {
					killed++
				}
			})
		}
	}
	if killed == 0 {
		t.Error("nobody was killed")
	}
	t.Logf("killed %d times", killed)
}

// chosen takes each write with LOCKSTEP_CRASH=all, and a few of them without.
func chosen(n, of int) bool {
	return os.Getenv("LOCKSTEP_CRASH") == "all" || n%max(1, of/3) == 0
}

// refusing is a network in which nobody answers.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// A second driver is told who drives, and the first goes on.
func TestTwoDriversExcludeEachOther(t *testing.T) {
	s := newScene(t, "east")
	s.begin(t)
	c := clusterOf(t, s.leader.Config)
	access := rest.CopyConfig(s.leader.Config)
	access.Wrap(func(http.RoundTripper) http.RoundTripper { return refusing{} })
	nowhere := clusterOf(t, access) // a member that is away, which is waited for
	open := func(identity string) *upgrade.Driver {
		return &upgrade.Driver{Run: client.ObjectKey{Namespace: area, Name: "crash"}, Leader: c, Identity: identity, Every: 50 * time.Millisecond,
			Connect: func(string) (upgrade.Cluster, error) { return nowhere, nil }}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	first := open("anna")
	started := make(chan struct{})
	first.Report = func(rollout.Decision) {
		select {
		case <-started:
		default:
			close(started)
		}
	}
	go func() { _, err := first.Drive(ctx); ended <- err }()
	<-started
	_, err := open("ben").Drive(t.Context())
	if r := refusal.In(err); r == nil || !strings.Contains(r.Why, "anna") {
		t.Errorf("the second driver ends with %v", err)
	}
	select {
	case err := <-ended:
		t.Errorf("the first driver ended: %v", err)
	default:
	}
	cancel()
	<-ended
}
