package overview_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/overview"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
)

var rewrite = flag.Bool("rewrite", false, "write what is printed into testdata; then read the diff")

// noon is when all stories of testdata are looked at.
var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// TestStories reads clusters from testdata/*.txtar, where NAME.yaml holds the
// objects of the cluster behind context NAME and NAME.failure why it could not
// be read, and compares the page with want.txt.
func TestStories(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			clusters, want := read(t, archive)
			rand.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
			var got bytes.Buffer
			if err := overview.New(noon, clusters).Write(&got, true); err != nil {
				t.Fatal(err)
			}
			if *rewrite {
				want.Data = got.Bytes()
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want.Data), got.String()); diff != "" {
				t.Errorf("wanted (-), printed (+):\n%s", diff)
			}
		})
	}
}

func read(t *testing.T, archive *txtar.Archive) (clusters []overview.Cluster, want *txtar.File) {
	t.Helper()
	for i := range archive.Files {
		file := &archive.Files[i]
		name, kind, _ := strings.Cut(file.Name, ".")
		switch kind {
		case "failure":
			clusters = append(clusters, overview.Cluster{Context: name, Failure: strings.TrimSpace(string(file.Data))})
		case "yaml":
			clusters = append(clusters, cluster(t, name, file.Data))
		default:
			want = file
		}
	}
	return clusters, want
}

func cluster(t *testing.T, name string, data []byte) overview.Cluster {
	t.Helper()
	c := overview.Cluster{Context: name}
	decoder := serializer.NewCodecFactory(scheme.New(), serializer.EnableStrict).UniversalDeserializer()
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data)))
	buffer := make([]byte, 1<<16)
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return c
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(bytes.Clone(buffer[:n]), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		put(t, &c, object)
	}
}

func put(t *testing.T, c *overview.Cluster, object runtime.Object) {
	t.Helper()
	switch o := object.(type) {
	case *corev1.Namespace:
		c.UID = o.UID
	case *corev1.ServiceAccount:
		c.Accounts = append(c.Accounts, *o)
	case *v1alpha2.ClusterSet:
		c.ClusterSets = append(c.ClusterSets, *o)
	case *v1alpha1.MemberClusterAnnounce:
		c.Announces = append(c.Announces, *o)
	case *coordinationv1.Lease:
		c.Leases = append(c.Leases, *o)
	case *v1alpha1.ResourceImport:
		c.Losses = append(c.Losses, *o)
	case *v1alpha1.ResourceExport:
		c.ResourceExports = append(c.ResourceExports, *o)
	case *mcsv1beta1.ServiceExport:
		c.ServiceExports = append(c.ServiceExports, *o)
	case *mcsv1beta1.ServiceImport:
		c.ServiceImports = append(c.ServiceImports, *o)
	case *discoveryv1.EndpointSlice:
		c.Slices = append(c.Slices, *o)
	default:
		t.Fatalf("nobody reads a %T", object)
	}
}

func TestViewIsOneValueForAllFormats(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/healthy.txtar")
	if err != nil {
		t.Fatal(err)
	}
	clusters, _ := read(t, archive)
	view := overview.New(noon, clusters)
	if !view.Healthy() {
		t.Errorf("not healthy: %+v", view)
	}
	asJSON, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	for format, text := range map[string][]byte{"JSON": asJSON, "YAML": asYAML} {
		var back overview.View
		if err := yaml.UnmarshalStrict(text, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(view, back); diff != "" {
			t.Errorf("%s says something else:\n%s", format, diff)
		}
	}
	if bytes.Contains(asJSON, []byte("null")) {
		t.Errorf("an empty list is null in %s", asJSON)
	}
}

func TestLongTablesAreCut(t *testing.T) {
	c := overview.Cluster{Context: "east", ClusterSets: []v1alpha2.ClusterSet{{Spec: v1alpha2.ClusterSetSpec{
		ClusterID: "east", Leaders: []v1alpha2.LeaderCluster{{ClusterID: "hub", Server: "https://hub"}}}}}}
	for i := range 100 {
		var e mcsv1beta1.ServiceExport
		e.Namespace, e.Name = "shop", fmt.Sprintf("s%03d", i)
		c.ServiceExports = append(c.ServiceExports, e)
	}
	var cut, whole strings.Builder
	view := overview.New(noon, []overview.Cluster{c})
	if err := errors.Join(view.Write(&cut, false), view.Write(&whole, true)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(cut.String(), "… 60 more; -o wide shows all") || strings.Contains(cut.String(), "shop/s040  ") {
		t.Errorf("was not cut after 40 rows:\n%s", cut.String())
	}
	if !strings.Contains(whole.String(), "shop/s099") {
		t.Error("the whole table lacks its last row")
	}
}

// What other clusters say cannot steer the terminal: no sequence of ECMA-48, of
// seven bits or eight, gets through, and no cell begins another.
func TestNoControlCharacterIsPrinted(t *testing.T) {
	const evil = "fleet\x1b[2J\u009b31m\x7f\a\t\r\n\u202e"
	view := overview.View{
		ClusterSets: []overview.ClusterSet{{
			Name: evil, Leader: overview.Leader{ClusterID: evil},
			Members:  []overview.Member{{ClusterID: evil, Peer: evil}},
			Exports:  []overview.Export{{Namespace: evil, Name: evil}},
			Problems: []overview.Problem{{What: evil, Why: evil, Next: evil}},
		}},
		Problems: []overview.Problem{{What: evil, Next: evil}},
	}
	var page bytes.Buffer
	if err := view.Write(&page, true); err != nil {
		t.Fatal(err)
	}
	for _, r := range page.String() {
		if r != '\n' && (unicode.IsControl(r) || r == '\u202e') {
			t.Errorf("%q gets through", r)
		}
	}
	if !strings.Contains(page.String(), `fleet\x1b[2J\u009b31m\x7f\a\t\r\n\u202e`) {
		t.Errorf("it is not shown what was there:\n%s", page.String())
	}
}

// A script finds every problem in one list, and in it which ClusterSet each is of.
func TestAllProblemsAreInOnePlace(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/one-away.txtar")
	if err != nil {
		t.Fatal(err)
	}
	clusters, _ := read(t, archive)
	text, err := json.Marshal(overview.New(noon, clusters))
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Problems    []struct{ What, ClusterSet string }
		ClusterSets []struct {
			Unread   []string
			Problems []struct{ What, ClusterSet string }
		}
	}
	if err := json.Unmarshal(text, &page); err != nil {
		t.Fatal(err)
	}
	type problem = struct{ What, ClusterSet string }
	own := problem{`member "west" is about to lose its exports`, "fleet"}
	if diff := cmp.Diff([]problem{{`cluster behind context "west" cannot be read`, ""}, own}, page.Problems); diff != "" {
		t.Errorf("all: %s", diff)
	}
	if diff := cmp.Diff([]problem{own}, page.ClusterSets[0].Problems); diff != "" {
		t.Errorf("of the ClusterSet: %s", diff)
	}
	if diff := cmp.Diff([]string{"west"}, page.ClusterSets[0].Unread); diff != "" {
		t.Errorf("unread: %s", diff)
	}
}

// Whoever reads less than there is hears what is missing, and is not told that
// something is wrong.
func TestWhatWasNotReadIsSaid(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/healthy.txtar")
	if err != nil {
		t.Fatal(err)
	}
	all, _ := read(t, archive)
	for name, want := range map[string]string{
		"hub":  `not read: member "east", member "west"; give their contexts`,
		"east": `not read: leader "hub", which knows who the members are; give their contexts`,
	} {
		only := slices.DeleteFunc(slices.Clone(all), func(c overview.Cluster) bool { return c.Context != name })
		view := overview.New(noon, only)
		var page bytes.Buffer
		if err := view.Write(&page, false); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page.String(), want) {
			t.Errorf("only %s: want %q in\n%s", name, want, page.String())
		}
		if !view.Healthy() {
			t.Errorf("only %s: %v", name, view.Problems)
		}
	}
	var page bytes.Buffer
	if err := overview.New(noon, all).Write(&page, false); err != nil || strings.Contains(page.String(), "not read") {
		t.Errorf("%v\n%s", err, page.String())
	}
}
