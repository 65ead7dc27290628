package mc

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// holding makes a membership that remembers this of its leader, which is the
// lab's own cluster.
func holding(t *testing.T, c client.Client, hub *lab.Cluster, memory v1alpha1.LeaderMemory) AcceptLeaderOptions {
	t.Helper()
	opts := eastJoins(t, c)
	area := namespace(t, c, "area")
	token, err := CreateMemberToken(t.Context(), c, eastToken(area))
	if err != nil {
		t.Fatal(err)
	}
	opts.Token, opts.LeaderNamespace, opts.LeaderAPIServer, opts.AllowLoopback = token.Secret, area, hub.RESTConfig().Host, true
	if _, err := Join(t.Context(), c, opts); err != nil {
		t.Fatal(err)
	}
	var set v1alpha2.ClusterSet
	get(t, c, opts.Namespace, "fleet", &set)
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1alpha1.AnnotationLeaderSeen, clusterset.WriteMemory(memory))
	if err := c.Update(t.Context(), &set); err != nil {
		t.Fatal(err)
	}
	return AcceptLeaderOptions{Namespace: opts.Namespace, ClusterSet: "fleet"}
}

var heldMemory = v1alpha1.LeaderMemory{ClusterSetUID: "set-2", Revision: 7, HoldSince: &metav1.Time{Time: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}}

func TestAcceptLeaderNamesTheLeadersClusterSet(t *testing.T) {
	c, hub := cluster(t)
	opts := holding(t, c, hub, heldMemory)
	touched, err := AcceptLeader(t.Context(), c, opts)
	if err != nil || touched.Outcome != apply.Configured {
		t.Fatalf("%v, %v", touched, err)
	}
	var set v1alpha2.ClusterSet
	get(t, c, opts.Namespace, "fleet", &set)
	same(t, "set-2", set.Annotations[v1alpha1.AnnotationAcceptLeader])
	if !clusterset.Accepted(set.Annotations, heldMemory) {
		t.Error("the member would not take this for a yes")
	}
}

func TestAcceptLeaderShowsWhatIsLost(t *testing.T) {
	c, hub := cluster(t)
	opts := holding(t, c, hub, heldMemory)
	imported := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: opts.Namespace, Name: "cart", Labels: map[string]string{v1alpha1.LabelClusterSet: "fleet"}},
		Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.Headless, Ports: []mcsv1beta1.ServicePort{{Port: 80}}},
	}
	create(t, c, imported)
	imported.Status.Clusters = []mcsv1beta1.ClusterStatus{{Cluster: "west"}}
	if err := c.Status().Update(t.Context(), imported); err != nil {
		t.Fatal(err)
	}
	var shown Acceptance
	opts.Confirm = func(a Acceptance) error { shown = a; return errPlanted }
	if _, err := AcceptLeader(t.Context(), c, opts); err == nil {
		t.Error("accepted although refused")
	}
	// The credential has no role in this lab, so the common area stays unread.
	if shown.Unread == nil || len(shown.Losses) != 1 || shown.Losses[0].Service.Name != "cart" {
		t.Errorf("shown was %+v", shown)
	}
	var set v1alpha2.ClusterSet
	get(t, c, opts.Namespace, "fleet", &set)
	same(t, "", set.Annotations[v1alpha1.AnnotationAcceptLeader])

	_, errOut, err := command(t, hub, "accept-leader", "--clusterset", "fleet", "-n", opts.Namespace)
	wantError(t, err, exit.Usage, "--yes")
	if !strings.Contains(errOut, opts.Namespace+"/cart") || !strings.Contains(errOut, "since 2030-01-01T00:00:00Z") {
		t.Errorf("was asked:\n%s", errOut)
	}
}

func TestLosses(t *testing.T) {
	shop := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: name} }
	imported := func(name string, clusters ...string) mcsv1beta1.ServiceImport {
		i := mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		for _, c := range clusters {
			i.Status.Clusters = append(i.Status.Clusters, mcsv1beta1.ClusterStatus{Cluster: c})
		}
		return i
	}
	here := []mcsv1beta1.ServiceImport{imported("gone", "west"), imported("less", "east", "west"), imported("same", "east"), imported("empty")}
	there := area{
		imports:   map[types.NamespacedName]bool{shop("less"): true, shop("same"): true},
		exporters: map[types.NamespacedName][]string{shop("less"): {"east"}, shop("same"): {"east", "north"}},
	}
	var lines []string
	for _, l := range losses(here, there, true) {
		lines = append(lines, l.String())
	}
	same(t, []string{
		"shop/empty is withdrawn (exported by nobody)",
		"shop/gone is withdrawn (exported by west)",
		"shop/less loses the endpoints of west",
	}, lines)
	same(t, len(here), len(losses(here, area{}, false)))
}

func TestAcceptLeaderWithoutAHold(t *testing.T) {
	c, hub := cluster(t)
	opts := holding(t, c, hub, v1alpha1.LeaderMemory{ClusterSetUID: "set-1"})
	touched, err := AcceptLeader(t.Context(), c, opts)
	if err != nil || touched.Outcome != apply.Unchanged {
		t.Errorf("%v, %v", touched, err)
	}
	removeSets(t, c, opts.Namespace)
	_, err = AcceptLeader(t.Context(), c, opts)
	wantError(t, err, exit.Failed, "no membership")
}

func TestAcceptLeaderNamesTheHoldOfANamelessLeader(t *testing.T) {
	c, hub := cluster(t)
	nameless := v1alpha1.LeaderMemory{Revision: 7, HoldSince: heldMemory.HoldSince}
	opts := holding(t, c, hub, nameless)
	if _, err := AcceptLeader(t.Context(), c, opts); err != nil {
		t.Fatal(err)
	}
	var set v1alpha2.ClusterSet
	get(t, c, opts.Namespace, "fleet", &set)
	same(t, "2030-01-01T00:00:00Z", set.Annotations[v1alpha1.AnnotationAcceptLeader])
	if !clusterset.Accepted(set.Annotations, nameless) {
		t.Error("the member would not take this for a yes")
	}
}

func TestAcceptLeaderWaitsForTheMember(t *testing.T) {
	c, hub := cluster(t)
	opts := holding(t, c, hub, heldMemory)
	opts.Wait = time.Second
	_, err := AcceptLeader(t.Context(), c, opts)
	wantError(t, err, exit.Waiting, "still withdraws nothing")

	opts.Wait = testTime
	opts.Progress = func(string) {
		var set v1alpha2.ClusterSet
		get(t, c, opts.Namespace, "fleet", &set)
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1alpha1.AnnotationLeaderSeen, clusterset.WriteMemory(v1alpha1.LeaderMemory{ClusterSetUID: "set-2"}))
		if err := c.Update(t.Context(), &set); err != nil {
			t.Error(err)
		}
	}
	if _, err := AcceptLeader(t.Context(), c, opts); err != nil {
		t.Error(err)
	}
}
