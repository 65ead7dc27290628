package mc

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/overview"
)

func TestStatusReadsBothFormsOfAClusterSet(t *testing.T) {
	c, hub := cluster(t)
	member := eastJoins(t, c)
	area := namespace(t, c, "area")
	member.LeaderNamespace = area
	member.Token = nil
	member.TokenSecretName = "ready"
	ready := tokenSecret("ready", "word")
	ready.Namespace = member.Namespace
	create(t, c, ready)
	if _, err := Init(t.Context(), c, InitOptions{Namespace: area, ClusterSet: "fleet", ClusterID: "hub"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(t.Context(), c, member); err != nil {
		t.Fatal(err)
	}
	create(t, c,
		&v1alpha1.MemberClusterAnnounce{ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: "member-announce-from-east"}, ClusterID: "east"},
		&mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: "cart"}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: "cart-1", Labels: map[string]string{
				v1alpha1.LabelClusterSet: "fleet", mcsv1beta1.LabelServiceName: "cart", mcsv1beta1.LabelSourceCluster: "west"}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.1.1"}}}},
		&mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: "cart"},
			Spec: mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.Headless, Ports: []mcsv1beta1.ServicePort{{Port: 80}}}},
	)
	out, _, err := command(t, hub, "status", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var view overview.View
	if err := json.Unmarshal([]byte(out), &view); err != nil {
		t.Fatal(err)
	}
	set := ours(t, view, area)
	same(t, []string{"east"}, memberIDs(set))
	exports := slices.DeleteFunc(set.Exports, func(e overview.Export) bool { return e.Namespace != member.Namespace })
	imports := slices.DeleteFunc(set.Imports, func(i overview.Import) bool { return i.Namespace != member.Namespace })
	if len(exports) != 1 || len(imports) != 1 {
		t.Fatalf("exports %v, imports %v", exports, imports)
	}
	same(t, []overview.Source{{ClusterID: "west", ReadyEndpoints: 1}}, imports[0].Sources)

	_, _, err = command(t, hub, "status", "--exit-code")
	wantError(t, err, exit.Refused, "problems")
}

// ours finds the ClusterSet of this test among those of others.
func ours(t *testing.T, view overview.View, namespace string) overview.ClusterSet {
	t.Helper()
	for _, set := range view.ClusterSets {
		if set.Leader.Namespace == namespace {
			return set
		}
	}
	t.Fatalf("no ClusterSet is led from Namespace %q in %+v", namespace, view)
	return overview.ClusterSet{}
}

func memberIDs(set overview.ClusterSet) []string {
	var ids []string
	for _, m := range set.Members {
		ids = append(ids, m.ClusterID)
	}
	return ids
}

func TestStatusShowsTheOthersWhenOneIsAway(t *testing.T) {
	c, _ := cluster(t)
	hanging := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			<-ctx.Done()
			return ctx.Err()
		},
	})
	begin := time.Now()
	view, err := Status(t.Context(), []Source{
		{Context: "here", Reader: c}, {Context: "away", Reader: hanging}, {Context: "broken", Failure: errors.New("no credentials")},
	}, 10*time.Second)
	if err != nil {
		t.Error(err) // one cluster was read
	}
	if took := time.Since(begin); took > testTime {
		t.Errorf("took %s", took)
	}
	var failures []string
	for _, p := range view.Problems {
		if p.ClusterSet == "" { // those of other tests have problems of their own
			failures = append(failures, p.What+": "+p.Why)
		}
	}
	same(t, []string{
		`cluster behind context "away" cannot be read: no answer within 10s`,
		`cluster behind context "broken" cannot be read: no credentials`,
	}, failures)
}

func TestStatusOfAClusterWithoutTheKinds(t *testing.T) {
	view, err := Status(t.Context(), []Source{{Context: "plain", Reader: plainCluster{}}}, testTime)
	if err != nil || !view.Healthy() || len(view.ClusterSets) != 0 {
		t.Errorf("view is %+v, %v", view, err)
	}
}

func TestStatusChoosesContexts(t *testing.T) {
	_, hub := cluster(t)
	path := twoContexts(t, hub.KubeconfigPath())
	out, _, err := command(t, nil, "status", "--kubeconfig", path, "--all-contexts")
	if err != nil || !strings.Contains(out, `context "nobody"`) {
		t.Errorf("%v\n%s", err, out)
	}
	_, _, err = command(t, nil, "status", "--kubeconfig", path, "--contexts", "hub,missing")
	wantError(t, err, exit.Usage, `"missing"`, "hub, nobody")
	_, _, err = command(t, nil, "status", "--kubeconfig", path, "--contexts", "hub", "--all-contexts")
	wantError(t, err, exit.Usage, "exclude")
}

// A mistyped context is the mistake of the caller, whichever flag names it; a
// page on which nothing could be read is no success.
func TestStatusOfNothing(t *testing.T) {
	config := clientcmdapi.NewConfig()
	config.Clusters["away"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.Contexts["hub"], config.CurrentContext = &clientcmdapi.Context{Cluster: "away"}, "hub"
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, "kubeconfig", text)
	for _, flag := range []string{"--context", "--contexts"} {
		out, _, err := command(t, nil, "status", "--kubeconfig", path, flag, "hubb")
		wantError(t, err, exit.Usage, `"hubb"`, `did you mean "hub"?`)
		same(t, "", out)
	}
	out, _, err := command(t, nil, "status", "--kubeconfig", path)
	wantError(t, err, exit.Failed, "no cluster could be read")
	if !strings.Contains(out, `context "hub"`) {
		t.Errorf("the page does not tell what is not read:\n%s", out)
	}
}

// twoContexts adds a context that leads nowhere.
func twoContexts(t *testing.T, path string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	current := config.Contexts[config.CurrentContext]
	hub, nobody := *current, *current
	away := *config.Clusters[current.Cluster]
	away.Server = "https://127.0.0.1:1"
	config.Clusters["away"] = &away
	nobody.Cluster = "away"
	delete(config.Contexts, config.CurrentContext)
	config.Contexts["hub"], config.Contexts["nobody"], config.CurrentContext = &hub, &nobody, "hub"
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "kubeconfig", text)
}

// plainCluster knows no kind of the multi-cluster API.
type plainCluster struct{ client.Reader }

func (plainCluster) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.SetUID("uid")
	return nil
}

func (plainCluster) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return &meta.NoKindMatchError{}
}
