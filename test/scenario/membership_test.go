package scenario_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/lab/relay"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

const connected = "1/1 Ready=True/; leader Ready=True/ IsLeader=True/"

// awaitStatus waits until a controller's ClusterSet says this.
func awaitStatus(t *testing.T, m *fleet.Controller, want string) {
	t.Helper()
	fleet.Eventually(t, "the ClusterSet of "+m.Name, func() error { return m.CheckStatus(t, want) })
}

// beats waits for so many heartbeats with different times.
func beats(t *testing.T, f *fleet.Fleet, id string, n int) {
	t.Helper()
	seen := map[string]bool{}
	fleet.Eventually(t, fmt.Sprintf("%d heartbeats of %s", n, id), func() error {
		announce, err := f.Announce(t, id)
		if err != nil {
			return err
		}
		if touch := announce.Annotations["touch-ts"]; touch != "" {
			seen[touch] = true
		}
		if len(seen) < n {
			return fmt.Errorf("seen are %v", seen)
		}
		return nil
	})
}

func gone(t *testing.T, c client.Client, what string, object client.Object) {
	t.Helper()
	fleet.Eventually(t, what+" is gone", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it gives %w", err)
		}
		return nil
	})
}

// A member follows its ClusterSet and its Secret while it runs: a Secret that
// comes late, a wrong one, a wrong address, and a second ClusterSet.
func TestMEM_CS_1_MEM_CS_2_ClusterSetAndSecretAreFollowed(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east := f.Candidate(t, "east", "east")
	east.Start(t)
	set := east.Set()
	right := set.Spec.Leaders[0].Server
	set.Spec.Leaders[0].Server = "https://127.0.0.1:1"
	east.Make(t, set)
	t.Cleanup(func() { east.Leave(t) })

	problem := func(reason string) string {
		return "0/1 Ready=False/" + reason + "; leader Ready=False/" + reason + " IsLeader=False/"
	}
	awaitStatus(t, east, problem("CredentialMissing"))
	token := f.Token(t, east.Cluster, east.Namespace, "leader-token", "east")
	wrong := token.DeepCopy()
	wrong.Data["token"] = []byte("nonsense")
	east.Put(t, wrong)
	awaitStatus(t, east, problem("Disconnected")) // nobody listens at port 1
	east.ChangeSet(t, func(s *v1alpha2.ClusterSet) { s.Spec.Leaders[0].Server = right })
	awaitStatus(t, east, problem("Unauthorized"))
	east.Put(t, token.DeepCopy())
	awaitStatus(t, east, connected)

	second := east.Set()
	second.Name = "second"
	east.Make(t, second)
	t.Cleanup(func() { east.Discard(t, second) })
	fleet.Eventually(t, "a second ClusterSet is told that it is one", func() error {
		if err := east.Get(t.Context(), client.ObjectKeyFromObject(second), second); err != nil {
			return err
		}
		if c := second.Status.Conditions; len(c) != 1 || c[0].Reason != "SecondClusterSet" {
			return fmt.Errorf("its conditions are %+v", c)
		}
		return nil
	})
	if err := east.CheckStatus(t, connected); err != nil {
		t.Error(err)
	}
}

// The announce is the wire's, with marks of ours that upstream ignores.
func TestMEM_CS_3_Heartbeat(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	f.Leader.Stop(t) // so that nobody but the member writes it
	east := f.Candidate(t, "east", "east")
	east.Start(t)
	east.Request(t)
	t.Cleanup(func() { east.Stop(t); east.Leave(t) })
	var first *v1alpha1.MemberClusterAnnounce
	fleet.Eventually(t, "the member announces itself", func() (err error) {
		first, err = f.Announce(t, "east")
		return err
	})
	if first.Name != "member-announce-from-east" || first.ClusterID != "east" || first.ClusterSetID != f.Name || first.LeaderClusterID != "leader" {
		t.Errorf("the announce is %+v", first)
	}
	fleet.Eventually(t, "heartbeats rewrite touch-ts", func() error {
		announce, err := f.Announce(t, "east")
		if err != nil {
			return err
		}
		touch, err := time.Parse(time.RFC3339, announce.Annotations["touch-ts"])
		if err != nil {
			return err
		}
		if since := time.Since(touch); since < -time.Second || since > fleet.Deadline {
			return fmt.Errorf("the last was %s ago", since)
		}
		return nil
	})
	beats(t, f, "east", 3)
	// Without an answer of the leader the member does not claim to be connected.
	awaitStatus(t, east, "1/1 Ready=Unknown/WaitingForLeader; leader Ready=True/ IsLeader=False/WaitingForLeader")
	f.Leader.Start(t)
	awaitStatus(t, east, connected)
	announce, err := f.Announce(t, "east")
	if err != nil || !slices.Contains(announce.Finalizers, "memberclusterannounce.finalizer.antrea.io/east") {
		t.Errorf("the leader's answer is %v (%v)", announce.Finalizers, err)
	}
}

// A cluster that claims an ID of another publishes nothing under it, and above
// all withdraws nothing; it becomes a member when the other has left.
func TestMEM_CS_3_IDOfAnotherCluster(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east := f.Member(t, "east")
	west := f.Candidate(t, "west", "east")
	ns := namespaceOf(t, east.Cluster, west.Cluster)
	east.Service(t, ns, "web", ports, "10.51.6.1")
	east.Export(t, ns, "web")
	east.Service(t, ns, "cart", ports, "10.51.6.2")
	east.Export(t, ns, "cart")
	first := f.AwaitWire(t, "exported", ns, "cart", func(w fleet.Wire) error { return fleet.Merged(w.Services["east"]) })
	west.Service(t, ns, "web", other, "10.51.6.3")
	west.Export(t, ns, "web") // and no export of cart

	west.Start(t)
	west.Request(t)
	t.Cleanup(func() { west.Leave(t) })
	awaitStatus(t, west, "0/1 Ready=False/ClusterIDInUse; leader Ready=False/ClusterIDInUse IsLeader=False/")
	west.AwaitExport(t, ns, "web", taken, metav1.ConditionUnknown, mcsv1beta1.ServiceExportReasonPending)
	fleet.Steadily(t, time.Second, "the exports of the first are as they were", func() error {
		cart, err := f.Wire(t.Context(), ns, "cart")
		if err != nil {
			return err
		}
		if now := cart.Services["east"]; now == nil || now.UID != first.Services["east"].UID || len(cart.Slices["east"]) != 1 {
			return fmt.Errorf("cart: %v, %d slices", now, len(cart.Slices["east"]))
		}
		web, err := f.Wire(t.Context(), ns, "web")
		if err != nil {
			return err
		}
		if now := web.Services["east"]; now == nil || now.Spec.Service.ServiceSpec.Ports[0].Port != 80 {
			return fmt.Errorf("web: %v", now)
		}
		return nil
	})
	east.AwaitImport(t, ns, "web", fromEast("10.51.6.1"))
	awaitStatus(t, east, connected)

	east.Leave(t)
	awaitStatus(t, west, connected)
	f.AwaitWire(t, "the second publishes now", ns, "web", func(w fleet.Wire) error {
		if now := w.Services["east"]; now == nil || now.Spec.Service.ServiceSpec.Ports[0].Port != 81 {
			return fmt.Errorf("it is %v", now)
		}
		return fleet.Merged(w.Services["east"])
	})
	f.AwaitWire(t, "and nothing of the first is left", ns, "cart", nothing("east"))
}

// What was exported before a member joined is there right after, not a
// heartbeat later.
func TestMEM_CS_4_ImportsBeginWithTheConnection(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east := f.Member(t, "east")
	ns := namespaceOf(t, east.Cluster, fleet.Open(t, f.Lab, "west"))
	service := east.Service(t, ns, "web", ports, "10.51.0.1")
	east.Export(t, ns, "web")
	f.AwaitWire(t, "exported", ns, "web", func(w fleet.Wire) error { return fleet.Merged(w.Services["east"]) })
	west := f.Member(t, "west")
	ready := time.Now()
	west.AwaitImport(t, ns, "web", map[string][]string{"east": {service.Spec.ClusterIP}})
	t.Logf("the import was there %d ms after the member was ready; a heartbeat takes 1000 ms here", time.Since(ready).Milliseconds())
}

// foreign are objects of others that look like ours, in a Namespace of a member.
type foreign struct{ objects []client.Object }

func makeForeign(t *testing.T, c *fleet.Cluster, ns string) foreign {
	t.Helper()
	service := c.Service(t, ns, "antrea-mc-theirs", ports, "10.51.1.1")
	imported := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: ns},
		Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{}, IPs: []string{"10.250.0.1"}},
	}
	c.Make(t, imported)
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: ns, Labels: map[string]string{
		mcsv1beta1.LabelServiceName: "theirs", mcsv1beta1.LabelSourceCluster: "elsewhere", discoveryv1.LabelManagedBy: "another-implementation",
	}}, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{}}
	c.Make(t, slice)
	return foreign{[]client.Object{service, imported, slice}}
}

// untouched compares them with what they were.
func (f foreign) untouched(t *testing.T, c *fleet.Cluster) {
	t.Helper()
	for _, object := range f.objects {
		was := object.GetResourceVersion()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Errorf("%T %q: %v", object, object.GetName(), err)
		} else if is := object.GetResourceVersion(); is != was {
			t.Errorf("%T %q was written: %s, then %s", object, object.GetName(), was, is)
		}
	}
}

// Leaving withdraws what was exported, and removes what was imported; what
// others made, and what a user exported, stays as it is.
// covers: WK-25
func TestMEM_CS_5_Leave(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east, west := f.Member(t, "east"), f.Member(t, "west")
	ns := namespaceOf(t, east.Cluster, west.Cluster)
	theirs := makeForeign(t, east.Cluster, ns)
	addresses := map[string][]string{}
	for i, m := range []*fleet.Controller{east, west} {
		addresses[m.ID] = []string{m.Service(t, ns, "web", ports, fmt.Sprintf("10.51.2.%d", i+1)).Spec.ClusterIP}
		m.Export(t, ns, "web")
	}
	east.AwaitImport(t, ns, "web", map[string][]string{"east": {"10.51.2.1"}, "west": addresses["west"]})
	west.AwaitImport(t, ns, "web", map[string][]string{"east": addresses["east"], "west": {"10.51.2.2"}})

	east.Leave(t)
	gone(t, f.Leader, "the announce", named(&v1alpha1.MemberClusterAnnounce{}, f.Area, "member-announce-from-east"))
	f.AwaitWire(t, "the exports are gone", ns, "web", nothing("east"))
	east.AwaitNoImport(t, ns, "web")
	west.AwaitImport(t, ns, "web", map[string][]string{"west": {"10.51.2.2"}})
	theirs.untouched(t, east.Cluster)
	mustGet(t, east.Cluster, ns, "web")
	east.AwaitExport(t, ns, "web", taken, metav1.ConditionUnknown, mcsv1beta1.ServiceExportReasonPending)

	// It can come back, in the same process (WK-4).
	east.Join(t)
	west.AwaitImport(t, ns, "web", map[string][]string{"east": {mustGet(t, east.Cluster, ns, "web").Spec.ClusterIP}, "west": {"10.51.2.2"}})
	theirs.untouched(t, east.Cluster)
	beats(t, f, "east", 3)

	// Whoever deletes the Secret together with the ClusterSet leaves as well.
	if err := east.Delete(t.Context(), named(&corev1.Secret{}, east.Namespace, "leader-token")); err != nil {
		t.Fatal(err)
	}
	fleet.Eventually(t, "the ClusterSet misses its Secret", func() error { return east.CheckCondition(t, "False", "CredentialMissing") })
	east.Leave(t)
	gone(t, f.Leader, "the announce", named(&v1alpha1.MemberClusterAnnounce{}, f.Area, "member-announce-from-east"))
	f.AwaitWire(t, "the exports are gone", ns, "web", nothing("east"))
}

// The connection and the answer of the leader, as the member's ClusterSet tells
// them. The stages before the first answer are in TestMEM_CS_3_Heartbeat.
func TestMEM_CS_6_StatusExpiresByAge(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east := f.Member(t, "east")
	awaitStatus(t, east, connected)
	set, err := east.ReadSet(t)
	if err != nil || set.Status.ObservedGeneration != set.Generation {
		t.Errorf("observed generation %d of %d (%v)", set.Status.ObservedGeneration, set.Generation, err)
	}
	disconnected := "0/1 Ready=False/Disconnected; leader Ready=False/Disconnected IsLeader=True/"
	for _, how := range []relay.Cut{relay.Refused, relay.Silent} {
		east.Cut(t, how)
		awaitStatus(t, east, disconnected)
		fleet.Eventually(t, "the leader notices as well", func() error {
			return f.Leader.CheckStatus(t, "0/1 Ready=False/NoReadyCluster; east Ready=False/Disconnected")
		})
		east.Heal(t)
		awaitStatus(t, east, connected)
		fleet.Eventually(t, "both are connected again", func() error {
			return f.Leader.CheckStatus(t, "1/1 Ready=True/; east Ready=True/Connected")
		})
	}
}

// A member that starts without any ClusterSet removes what an earlier membership
// left, and nothing else.
// covers: WK-25
func TestMEM_ST_1_StartWithoutClusterSet(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east := f.Member(t, "east")
	ns := namespaceOf(t, east.Cluster)
	theirs := makeForeign(t, east.Cluster, ns)
	east.Service(t, ns, "web", ports, "10.51.3.1")
	east.Export(t, ns, "web")
	east.AwaitImport(t, ns, "web", map[string][]string{"east": {"10.51.3.1"}})

	east.Stop(t)
	east.Leave(t) // by taking the finalizer off: nobody is there to clean up
	if seen, err := east.Import(t, ns, "web"); err != nil || seen.Import == nil {
		t.Fatalf("nothing is left to be removed: %v", err)
	}
	east.Start(t)
	east.AwaitNoImport(t, ns, "web")
	theirs.untouched(t, east.Cluster)
	mustGet(t, east.Cluster, ns, "web")
}

// The leader's ClusterSet must name its own cluster as leader.
func TestLDR_CS_1_LeaderNamesItself(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	mine := f.Leader
	edit := func(id string) {
		set, err := mine.ReadSet(t)
		if err != nil {
			t.Fatal(err)
		}
		mine.Change(t, set, func() { set.Spec.Leaders[0].ClusterID = id })
	}
	awaitStatus(t, mine, "0/0 Ready=Unknown/NoMembers")
	edit("somebody-else")
	awaitStatus(t, mine, "0/0 Ready=False/InvalidClusterSet")
	east := f.Candidate(t, "east", "east")
	east.Start(t)
	east.Request(t)
	t.Cleanup(func() { east.Leave(t) })
	awaitStatus(t, east, "1/1 Ready=Unknown/WaitingForLeader; leader Ready=True/ IsLeader=False/WaitingForLeader")
	edit("leader")
	awaitStatus(t, mine, "1/1 Ready=True/; east Ready=True/Connected")
	awaitStatus(t, east, connected)
}

// A leader without ClusterSet serves nobody and takes nothing away; one that is
// made anew finds its members, and no import is made again.
func TestLDR_CS_1_DeletedClusterSetLosesNothing(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east := f.Member(t, "east")
	ns := namespaceOf(t, east.Cluster)
	offer(t, east, ns, "web")
	imported := east.AwaitImport(t, ns, "web", fromEast("10.52.0.1"))
	set, err := f.Leader.ReadSet(t)
	if err != nil {
		t.Fatal(err)
	}
	f.Leader.Discard(t, set)
	fleet.Steadily(t, time.Second, "nothing is taken away", func() error {
		w, err := f.Wire(t.Context(), ns, "web")
		if err != nil || w.Import == nil || w.Services["east"] == nil {
			return fmt.Errorf("import %v, export %v, %w", w.Import, w.Services["east"], err)
		}
		return nil
	})
	set.ObjectMeta = metav1.ObjectMeta{Name: set.Name, Namespace: set.Namespace}
	f.Leader.Make(t, set)
	t.Cleanup(func() { f.Leader.Discard(t, set) })
	awaitStatus(t, f.Leader, "1/1 Ready=True/; east Ready=True/Connected")
	awaitStatus(t, east, connected) // and no hold is left of the change
	offer(t, east, ns, "cart")
	east.AwaitImport(t, ns, "cart", fromEast("10.52.0.1"))
	again := east.AwaitImport(t, ns, "web", fromEast("10.52.0.1"))
	if again.Import.UID != imported.Import.UID || again.Service.UID != imported.Service.UID {
		t.Errorf("the import was made again: %v, then %v", imported.Import.UID, again.Import.UID)
	}
}

// Members come, fall silent, and are back; played by upstream's, whose
// heartbeats the test controls.
func TestLDR_CS_2_LDR_MS_2_Liveness(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	awaitStatus(t, f.Leader, "0/0 Ready=Unknown/NoMembers") // it looks: what comes now is a sign of life
	harbor, anchor := f.Upstream(t, "harbor"), f.Upstream(t, "anchor")
	awaitStatus(t, f.Leader, "2/2 Ready=True/; anchor Ready=True/Connected; harbor Ready=True/Connected")
	awaitStatus(t, f.Leader, "0/2 Ready=False/NoReadyCluster; anchor Ready=False/Disconnected; harbor Ready=False/Disconnected")
	harbor.Beat(t)
	fleet.Eventually(t, "one is back", func() error {
		return f.Leader.CheckStatus(t, "1/2 Ready=False/MembersNotReady; anchor Ready=False/Disconnected; harbor Ready=True/Connected")
	})
	set, err := f.Leader.ReadSet(t)
	if err != nil || set.Status.Conditions[0].Message != "not connected: anchor" || set.Status.ObservedGeneration != set.Generation {
		t.Errorf("the status is %+v (%v)", set.Status, err)
	}
	anchor.Leave(t)
	fleet.Eventually(t, "one that leaves is no member", func() error {
		return errors.Join(f.Leader.CheckStatus(t, "0/1 Ready=False/NoReadyCluster; harbor Ready=False/Disconnected"))
	})
}

// A leader that starts again knows what it knew: a dead member is not shown as
// connected, and as nothing happened, nothing is written.
func TestWK_28_LeaderStartsAgain(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	f.Upstream(t, "dead")
	east := f.Member(t, "east")
	status := "1/2 Ready=False/MembersNotReady; dead Ready=False/Disconnected; east Ready=True/Connected"
	awaitStatus(t, f.Leader, status)
	still(t, f, []*fleet.Controller{east}, "when the leader starts again", func() {
		f.Leader.Stop(t)
		beats(t, f, "east", 2)
		f.Leader.Start(t)
		for began := time.Now(); time.Since(began) < late+time.Second; { // longer than the silence that counts
			beats(t, f, "east", 2)
		}
	})
	if err := f.Leader.CheckStatus(t, status); err != nil {
		t.Error(err)
	}
	// And the leader works: it sees a member that dies now.
	east.Stop(t)
	awaitStatus(t, f.Leader, "0/2 Ready=False/NoReadyCluster; dead Ready=False/Disconnected; east Ready=False/Disconnected")
}

// Everything that leads a member to its leader can be changed while it runs, and
// every part of it uses the new way at once.
// covers: MEM-CS-1
func TestWK_2_NewAccessWithoutRestart(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east, west := f.Member(t, "east"), f.Member(t, "west")
	ns := namespaceOf(t, east.Cluster, west.Cluster)
	export := func(name string) {
		t.Helper()
		east.Service(t, ns, name, ports, "10.51.4.1")
		east.Export(t, ns, name)
	}
	reaches := func(name, as string) {
		t.Helper()
		west.AwaitImport(t, ns, name, map[string][]string{as: {mustGet(t, east.Cluster, ns, name).Spec.ClusterIP}})
	}
	export("web")
	reaches("web", "east")

	t.Run("token", func(t *testing.T) {
		// The old credential stops to work the moment the new one is there.
		fresh := f.Token(t, east.Cluster, east.Namespace, "leader-token", "east-fresh")
		east.Put(t, fresh)
		if err := f.Leader.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "member-east", Namespace: f.Area}}); err != nil {
			t.Fatal(err)
		}
		export("token")
		reaches("token", "east")
		beats(t, f, "east", 2)
		awaitStatus(t, east, connected)
	})
	t.Run("name of the Secret", func(t *testing.T) {
		east.Put(t, f.Token(t, east.Cluster, east.Namespace, "another-token", "east-another"))
		east.ChangeSet(t, func(s *v1alpha2.ClusterSet) { s.Spec.Leaders[0].Secret = "another-token" })
		if err := f.Leader.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "member-east-fresh", Namespace: f.Area}}); err != nil {
			t.Fatal(err)
		}
		export("secret")
		reaches("secret", "east")
		beats(t, f, "east", 2)
	})
	t.Run("server", func(t *testing.T) {
		east.ChangeSet(t, func(s *v1alpha2.ClusterSet) { s.Spec.Leaders[0].Server = f.Leader.Config.Host })
		east.Cut(t, relay.Refused) // the old way is gone
		export("server")
		reaches("server", "east")
		beats(t, f, "east", 2)
		awaitStatus(t, east, connected)
	})
	t.Run("cluster ID", func(t *testing.T) {
		east.ChangeSet(t, func(s *v1alpha2.ClusterSet) { s.Spec.ClusterID, s.Spec.Leaders[0].Secret = "east2", "east2-token" })
		fleet.Eventually(t, "the Secret is missing", func() error { return east.CheckCondition(t, "False", "CredentialMissing") })
		east.Put(t, f.Token(t, east.Cluster, east.Namespace, "east2-token", "east2"))
		gone(t, f.Leader, "the old announce", named(&v1alpha1.MemberClusterAnnounce{}, f.Area, "member-announce-from-east"))
		for _, name := range []string{"web", "token", "secret", "server"} {
			f.AwaitWire(t, "nothing of the old ID is left", ns, name, nothing("east"))
			reaches(name, "east2")
		}
		export("id")
		reaches("id", "east2")
		beats(t, f, "east2", 2)
		awaitStatus(t, east, connected)
		fleet.Eventually(t, "the leader counts two members", func() error {
			return f.Leader.CheckStatus(t, "2/2 Ready=True/; east2 Ready=True/Connected; west Ready=True/Connected")
		})
	})
}

// The heartbeat goes on after every re-connection, and its age alone decides
// what both sides say of it.
func TestWK_4_HeartbeatSurvivesReconnection(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east := f.Member(t, "east")
	for round := range 2 {
		east.ChangeSet(t, func(s *v1alpha2.ClusterSet) {
			s.Spec.Leaders[0].Server = map[bool]string{true: f.Leader.Config.Host, false: f.Server(east.Cluster)}[round%2 == 0]
		})
		beats(t, f, "east", 3)
	}
	awaitStatus(t, east, connected)
	awaitStatus(t, f.Leader, "1/1 Ready=True/; east Ready=True/Connected")

	// Everything else of the connection may fail: the heartbeat alone counts.
	role := named(&rbacv1.Role{}, f.Area, v1alpha1.MemberClusterRole)
	var rules []rbacv1.PolicyRule
	f.Leader.Change(t, role, func() {
		rules = slices.Clone(role.Rules)
		role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Resources, "endpointslices") || slices.Contains(r.Resources, "resourceimports")
		})
	})
	east.Put(t, f.Token(t, east.Cluster, east.Namespace, "leader-token", "east-again"))
	beats(t, f, "east", 3)
	awaitStatus(t, f.Leader, "1/1 Ready=True/; east Ready=True/Connected")
	fleet.Eventually(t, "the ClusterSet says what fails", func() error {
		set, err := east.ReadSet(t)
		if err != nil {
			return err
		}
		return mentions(set.Status.Conditions[0].Message, "endpointslices and resourceimports", f.Area)
	})
	// Beats stop: both notice.
	f.Leader.Change(t, role, func() { role.Rules = nil })
	awaitStatus(t, east, "0/1 Ready=False/Unauthorized; leader Ready=False/Unauthorized IsLeader=True/")
	awaitStatus(t, f.Leader, "0/1 Ready=False/NoReadyCluster; east Ready=False/Disconnected")
	f.Leader.Change(t, role, func() { role.Rules = rules })
	awaitStatus(t, east, connected)
}

// A member that leaves while the leader is away is clean at once; the finalizer
// waits for the withdrawal, and taking it off ends the wait (leave --force).
func TestWK_8_LeaveWithoutLeader(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east := f.Member(t, "east")
	ns := namespaceOf(t, east.Cluster)
	east.Service(t, ns, "web", ports, "10.51.5.1")
	east.Export(t, ns, "web")
	east.AwaitImport(t, ns, "web", map[string][]string{"east": {"10.51.5.1"}})

	leave := func() *v1alpha2.ClusterSet {
		t.Helper()
		set := east.Set()
		if err := east.Delete(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		east.AwaitNoImport(t, ns, "web")
		fleet.Eventually(t, "the ClusterSet says what it waits for", func() error {
			set, err := east.ReadSet(t)
			if err != nil {
				return err
			}
			if c := set.Status.Conditions[0]; c.Reason != "Leaving" || !strings.Contains(c.Message, "--force") {
				return fmt.Errorf("its condition is %+v", c)
			}
			return nil
		})
		return set
	}
	east.Cut(t, relay.Refused)
	set := leave()
	east.Heal(t)
	gone(t, east, "the ClusterSet", set)
	f.AwaitWire(t, "withdrawn when the leader was back", ns, "web", nothing("east"))

	east.Request(t)
	east.AwaitReady(t)
	east.AwaitImport(t, ns, "web", map[string][]string{"east": {"10.51.5.1"}})
	east.Cut(t, relay.Silent)
	set = leave()
	fleet.Eventually(t, "the finalizer is taken off", func() error {
		if err := east.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		set.Finalizers = nil
		return east.Update(t.Context(), set)
	})
	gone(t, east, "the ClusterSet", set)
	east.Heal(t)
	if _, err := f.Announce(t, "east"); err != nil {
		t.Errorf("a forced leave has told the leader: %v", err)
	}
	east.Request(t) // and the cluster can join again
	east.AwaitReady(t)
}

// Claims of the time before v1.13. Whether they are served is asked once, when
// the process starts.
func TestAPI_LEG_1_ClaimsAreLookedForAtTheStart(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	west := f.Candidate(t, "west", "west-of-old")
	west.Start(t)
	set := makeLegacySet(t, f, west)
	invalid := "0/1 Ready=False/InvalidClusterSet; leader Ready=False/InvalidClusterSet IsLeader=False/"
	awaitStatus(t, west, invalid)
	serveClaims(t, west.Cluster)
	claim(t, west.Cluster, west.Namespace, v1alpha2.ClaimClusterID, "west-of-old")
	fleet.Steadily(t, time.Second, "claims that came later are not looked for", func() error { return west.CheckStatus(t, invalid) })
	west.Restart(t)
	awaitStatus(t, west, connected)
	if err := west.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil || set.Spec.ClusterID != "west-of-old" {
		t.Errorf("the ID was not written into the ClusterSet: %+v (%v)", set.Spec, err)
	}
}

func TestAPI_LEG_2_IDFromTheClaim(t *testing.T) {
	l := clusters.Lab(t)
	serveClaims(t, fleet.Open(t, l, "west"))
	serveClaims(t, fleet.Open(t, l, "leader"))
	f := fleet.New(t, l, nameOf(t))
	f.Leader.Restart(t)
	// The leader's own ID comes from a claim as well (LDR-CS-1).
	old := &v1alpha1.ClusterSet{}
	f.Leader.Change(t, named(old, f.Area, f.Name), func() {}) // a write through v1alpha1 loses spec.clusterID
	awaitStatus(t, f.Leader, "0/0 Ready=False/InvalidClusterSet")
	claim(t, f.Leader.Cluster, f.Area, v1alpha2.ClaimClusterID, "leader")
	awaitStatus(t, f.Leader, "0/0 Ready=Unknown/NoMembers")

	west := f.Candidate(t, "west", "west-of-old")
	claim(t, west.Cluster, west.Namespace, v1alpha2.ClaimClusterSetID, "not-read-any-more")
	west.Start(t)
	set := makeLegacySet(t, f, west)
	awaitStatus(t, west, "0/1 Ready=False/InvalidClusterSet; leader Ready=False/InvalidClusterSet IsLeader=False/")
	claim(t, west.Cluster, west.Namespace, v1alpha2.ClaimClusterID, "west-of-old")
	awaitStatus(t, west, connected) // tried again without an event
	announce, err := f.Announce(t, "west-of-old")
	if err != nil || announce.ClusterSetID != f.Name {
		t.Errorf("the announce is %+v (%v)", announce, err)
	}
	if err := west.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil || set.Spec.ClusterID != "west-of-old" {
		t.Errorf("the ID was not written into the ClusterSet: %+v (%v)", set.Spec, err)
	}
}

func TestAPI_LEG_3_ClaimsBesideAnIDAreIgnored(t *testing.T) {
	l := clusters.Lab(t)
	serveClaims(t, fleet.Open(t, l, "west"))
	f := fleet.New(t, l, nameOf(t))
	west := f.Candidate(t, "west", "west")
	claim(t, west.Cluster, west.Namespace, v1alpha2.ClaimClusterID, "west-of-old")
	west.Start(t)
	west.Join(t)
	if _, err := f.Announce(t, "west"); err != nil {
		t.Error(err)
	}
	if _, err := f.Announce(t, "west-of-old"); !apierrors.IsNotFound(err) {
		t.Errorf("reading the announce of the claim gives %v", err)
	}
}

// makeLegacySet joins as a cluster of old: through v1alpha1, which has no ID.
func makeLegacySet(t *testing.T, f *fleet.Fleet, m *fleet.Controller) *v1alpha2.ClusterSet {
	t.Helper()
	m.Put(t, f.Token(t, m.Cluster, m.Namespace, "leader-token", m.ID))
	set := m.Set()
	leader := set.Spec.Leaders[0]
	m.Make(t, &v1alpha1.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: set.Name, Namespace: set.Namespace},
		Spec: v1alpha1.ClusterSetSpec{
			Namespace: set.Spec.Namespace,
			Leaders:   []v1alpha1.MemberCluster{{ClusterID: leader.ClusterID, Server: leader.Server, Secret: leader.Secret}},
		},
	})
	t.Cleanup(func() { m.Leave(t) })
	return set
}

// serveClaims installs the legacy kind until the test ends.
func serveClaims(t *testing.T, c *fleet.Cluster) {
	t.Helper()
	crds, err := config.LegacyCRDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		c.Serve(t, crd)
	}
}

func claim(t *testing.T, c *fleet.Cluster, namespace, name, value string) {
	t.Helper()
	c.Make(t, &v1alpha2.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Value: value})
}
