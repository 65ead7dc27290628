package mc

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// covers: CLI-5.1
func TestInitMakesTheLeadersClusterSet(t *testing.T) {
	c, _ := cluster(t)
	ns := namespace(t, c, "init")
	result, err := Init(t.Context(), c, InitOptions{Namespace: ns, ClusterSet: "fleet", ClusterID: "hub"})
	if err != nil || result.ClusterSet.Outcome != apply.Created {
		t.Fatalf("Init = %v, %v", result, err)
	}
	var set v1alpha2.ClusterSet
	get(t, c, ns, "fleet", &set)
	want := v1alpha2.ClusterSetSpec{ClusterID: "hub", Leaders: []v1alpha2.LeaderCluster{{ClusterID: "hub"}}, Namespace: ns}
	same(t, want, set.Spec)
}

func TestWK_65_InitIsRepeatable(t *testing.T) {
	c, _ := cluster(t)
	ns := namespace(t, c, "init")
	opts := InitOptions{Namespace: ns, ClusterSet: "fleet", ClusterID: "hub", LeaderAPIServer: "https://hub.example:6443"}
	for _, want := range []Outcome{apply.Created, apply.Unchanged} {
		var file strings.Builder
		opts.JoinConfig = ToWriter(&file)
		result, err := Init(t.Context(), c, opts)
		if err != nil || result.ClusterSet.Outcome != want {
			t.Fatalf("Init = %v, %v; want %s", result, err, want)
		}
		if !strings.Contains(file.String(), "leaderNamespace: "+ns) {
			t.Errorf("run that left the ClusterSet %s wrote no join config:\n%s", want, file.String())
		}
	}
}

func TestInitRefusesAnotherClusterSet(t *testing.T) {
	c, _ := cluster(t)
	ns := namespace(t, c, "init")
	opts := InitOptions{Namespace: ns, ClusterSet: "fleet", ClusterID: "hub"}
	if _, err := Init(t.Context(), c, opts); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*InitOptions){
		"another ClusterSet": func(o *InitOptions) { o.ClusterSet = "navy" },
		"another leader":     func(o *InitOptions) { o.ClusterID = "centre" },
	} {
		t.Run(name, func(t *testing.T) {
			other := opts
			change(&other)
			_, err := Init(t.Context(), c, other)
			wantError(t, err, exit.Refused, `"fleet"`, `"hub"`, other.ClusterSet, other.ClusterID)
		})
	}
	var sets v1alpha2.ClusterSetList
	if err := c.List(t.Context(), &sets, client.InNamespace(ns)); err != nil || len(sets.Items) != 1 {
		t.Errorf("after refusals there are %d ClusterSets, %v", len(sets.Items), err)
	}
}

func TestInitNeedsTheNamespace(t *testing.T) {
	c, _ := cluster(t)
	_, err := Init(t.Context(), c, InitOptions{Namespace: "nowhere", ClusterSet: "fleet", ClusterID: "hub"})
	wantError(t, err, exit.Failed, `no Namespace "nowhere"`, "kubectl create namespace nowhere")
}

func TestInitWaitsForTheLeaderController(t *testing.T) {
	c, _ := cluster(t)
	ns := namespace(t, c, "init")
	opts := InitOptions{Namespace: ns, ClusterSet: "fleet", ClusterID: "hub", Wait: time.Second}
	_, err := Init(t.Context(), c, opts)
	wantError(t, err, exit.Waiting, "no leader controller", "repeat the command")

	opts.Wait = testTime
	opts.Progress = func(string) { takeUp(t, c, ns, "fleet", v1alpha2.ClusterSet{}.Status) }
	if _, err := Init(t.Context(), c, opts); err != nil {
		t.Error(err)
	}
}

func TestInitWritesNothingOnBadInput(t *testing.T) {
	c, _ := cluster(t)
	ns := namespace(t, c, "init")
	good := InitOptions{Namespace: ns, ClusterSet: "fleet", ClusterID: "hub", JoinConfig: ToWriter(&strings.Builder{}), LeaderAPIServer: "https://hub.example"}
	for name, bad := range map[string]struct {
		change func(*InitOptions)
		words  []string
	}{
		"a dot in the cluster ID":       {func(o *InitOptions) { o.ClusterID = "hub.eu" }, []string{"dot", "hub.eu"}},
		"64 characters":                 {func(o *InitOptions) { o.ClusterID = strings.Repeat("a", 64) }, []string{"63"}},
		"a ClusterSet in upper case":    {func(o *InitOptions) { o.ClusterSet = "Fleet" }, []string{"Fleet"}},
		"a loopback address":            {func(o *InitOptions) { o.LeaderAPIServer = "https://127.0.0.1:6443" }, []string{"loopback", "--leader-apiserver", "--allow-loopback"}},
		"an address of any interface":   {func(o *InitOptions) { o.LeaderAPIServer = "https://0.0.0.0:6443" }, []string{"loopback"}},
		"an address without a scheme":   {func(o *InitOptions) { o.LeaderAPIServer = "hub.example:6443" }, []string{"https"}},
		"an address without protection": {func(o *InitOptions) { o.LeaderAPIServer = "http://hub.example" }, []string{"https"}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := good
			bad.change(&opts)
			_, err := Init(t.Context(), c, opts)
			wantError(t, err, exit.Refused, bad.words...)
		})
	}
	var sets v1alpha2.ClusterSetList
	if err := c.List(t.Context(), &sets, client.InNamespace(ns)); err != nil || len(sets.Items) != 0 {
		t.Errorf("bad input left %d ClusterSets, %v", len(sets.Items), err)
	}
}
