package upgrade_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/mc"
	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// renaming is a command line that renames, in one of its lives.
type renaming struct {
	clusters []*fleet.Cluster
	old, new string
}

// live runs the command with a connection that dies as m says.
func (r renaming) live(t *testing.T, m *mortal, options ...func(*mc.RenameOptions)) (mc.RenameResult, error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	opts := mc.RenameOptions{Old: r.old, New: r.new, Wait: wide}
	for _, c := range r.clusters {
		access := rest.CopyConfig(c.Config)
		access.QPS = -1
		if m != nil {
			access.Wrap(m.wrap)
			access.Wrap(func(next http.RoundTripper) http.RoundTripper { return mourner{next, cancel} })
		}
		writer, err := client.New(access, client.Options{Scheme: scheme.New()})
		if err != nil {
			t.Fatal(err)
		}
		opts.Clusters = append(opts.Clusters, mc.RenameCluster{Cluster: evidence.Cluster{Context: c.Name, Client: writer, Config: access}, Writer: writer})
	}
	last := ""
	opts.Report = func(d rollout.Decision) {
		if message := string(d.Phase) + " " + d.Message(); message != last {
			last = message
			t.Log(message)
		}
	}
	for _, change := range options {
		change(&opts)
	}
	return mc.Rename(ctx, opts)
}

// mourner ends a command whose connection is dead: it would wait for that to pass.
type mourner struct {
	next http.RoundTripper
	end  context.CancelCauseFunc
}

// RoundTrip implements http.RoundTripper.
func (m mourner) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := m.next.RoundTrip(request)
	if errors.Is(err, errDead) {
		m.end(errDead)
	}
	return response, err
}

// told is a rename whose command is killed at each of its writes, one life for
// each, and started again.
func (r renaming) told(t *testing.T, before bool) {
	t.Helper()
	for life := range 40 {
		m := &mortal{at: 1, before: false}
		if before {
			m.at, m.before = 2, true // the first is made, and the second never leaves
		}
		_, err := r.live(t, m)
		if err == nil {
			if life < 6 {
				t.Errorf("it was killed %d times only", life)
			}
			return
		}
		if m.killed == "" {
			t.Fatalf("life %d ends with %v", life, err)
		}
		t.Logf("killed at %s", m.killed)
	}
	t.Fatal("it does not come to an end")
}

// A member is renamed, by a command that is killed at every write, while all
// controllers run: in the other member, and in itself, no exported Service is
// without a ready endpoint for a moment, and nothing of the old ID is left.
//
// covers: WK-2, WK-4
func TestAMemberIsRenamedWithoutLoss(t *testing.T) {
	l := labtest.Start(t, labtest.Options{Clusters: []string{"leader", "east", "west"}})
	f := fleet.New(t, l, "renamed")
	east, west := f.Candidate(t, "east", "east-1"), f.Member(t, "west")
	east.Start(t)
	east.Join(t)
	ns := fleet.Namespace(t, "renamed", east.Cluster, west.Cluster)
	ports := []corev1.ServicePort{fleet.HTTP}
	web, api := east.Service(t, ns, "web", ports, "10.71.0.1"), west.Service(t, ns, "api", ports, "10.72.0.1")
	shop := east.Service(t, ns, "shop", ports, "10.71.0.2")
	east.Export(t, ns, "web")
	east.Export(t, ns, "shop")
	west.Export(t, ns, "api")
	for _, service := range []*corev1.Service{web, shop} {
		west.AwaitImport(t, ns, service.Name, map[string][]string{"east-1": {service.Spec.ClusterIP}})
	}
	east.AwaitImport(t, ns, "api", map[string][]string{"west": {api.Spec.ClusterIP}})

	refusedRenames(t, f, east, west)

	inWest, inEast := west.Watch(t, ns, "web", "shop"), east.Watch(t, ns, "api")
	all := []*fleet.Cluster{f.Leader.Cluster, east.Cluster, west.Cluster}
	for _, r := range []struct {
		renaming
		before bool
	}{{renaming{all, "east-1", "east1"}, false}, {renaming{all, "east1", "harbor"}, true}} {
		r.told(t, r.before)
		east.ID = r.new
		for _, service := range []*corev1.Service{web, shop} {
			west.AwaitImport(t, ns, service.Name, map[string][]string{r.new: {service.Spec.ClusterIP}})
		}
		nothingLeft(t, f, r.old)
	}
	inWest.Verdict(t)
	inEast.Verdict(t)
	for _, name := range []string{"web", "shop"} {
		if n := inWest.Least(name); n < 1 {
			t.Errorf("%s had %d ready endpoints in west", name, n)
		}
	}
	set, err := east.ReadSet(t)
	if err != nil || set.Spec.ClusterID != "harbor" || set.Annotations[v1alpha1.AnnotationRenamedFrom] != "" {
		t.Errorf("the ClusterSet of the member is %+v (%v)", set, err)
	}
	// Again is nothing to do, and what is exported from now on arrives.
	if result, err := (renaming{all, "east1", "harbor"}).live(t, nil); err != nil || result.Phase != rollout.Done {
		t.Errorf("again: %s, %v", result.Phase, err)
	}
	late := east.Service(t, ns, "late", ports, "10.71.0.3")
	east.Export(t, ns, "late")
	west.AwaitImport(t, ns, "late", map[string][]string{"harbor": {late.Spec.ClusterIP}})
}

// refusedRenames would cost an export, or are only shown: nothing is written.
func refusedRenames(t *testing.T, f *fleet.Fleet, east, west *fleet.Controller) {
	t.Helper()
	all := []*fleet.Cluster{f.Leader.Cluster, east.Cluster, west.Cluster}
	for name, c := range map[string]struct {
		renaming
		rule string
	}{
		"a pair":            {renaming{all, "east-1", "west-2"}, "UPG-CHK-7"},
		"another's ID":      {renaming{all, "east-1", "west"}, "UPG-CHK-2"},
		"no cluster ID":     {renaming{all, "east-1", "East"}, "UPG-CHK-18"},
		"an unknown member": {renaming{all, "north", "south"}, "UPG-CHK-5"},
		"not all looked at": {renaming{all[:2], "east-1", "east1"}, "UPG-CHK-5"},
	} {
		counted := &mortal{}
		_, err := c.live(t, counted)
		if r := refusal.In(err); r == nil || r.Rule != c.rule {
			t.Errorf("%s: it ends with %v, want a refusal by %s", name, err, c.rule)
		}
		if len(counted.writes) > 0 {
			t.Errorf("%s: it was refused, and wrote %v", name, counted.writes)
		}
	}
	counted := &mortal{}
	shown, err := renaming{all, "east-1", "east1"}.live(t, counted, func(o *mc.RenameOptions) { o.DryRun = true })
	if err != nil || shown.Phase != rollout.Ready || len(counted.writes) > 0 {
		t.Errorf("a dry run is %s (%v) and wrote %v", shown.Phase, err, counted.writes)
	}
}

// nothingLeft checks that nobody can speak as the old ID and nothing stands under it.
func nothingLeft(t *testing.T, f *fleet.Fleet, old string) {
	t.Helper()
	var exports v1alpha1.ResourceExportList
	var secrets corev1.SecretList
	if err := errors.Join(f.Leader.List(t.Context(), &exports, client.InNamespace(f.Area)), f.Leader.List(t.Context(), &secrets, client.InNamespace(f.Area))); err != nil {
		t.Fatal(err)
	}
	for _, e := range exports.Items {
		if e.Spec.ClusterID == old {
			t.Errorf("ResourceExport %q is left", e.Name)
		}
	}
	for _, s := range secrets.Items {
		if strings.HasPrefix(s.Name, old+"-token") {
			t.Errorf("Secret %q is left", s.Name)
		}
	}
	if _, err := f.Announce(t, old); !apierrors.IsNotFound(err) {
		t.Errorf("the announce of %q: %v", old, err)
	}
}
