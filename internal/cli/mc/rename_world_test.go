package mc

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// TestRename gives every flag of the verb, with real controllers on both sides, and
// checks what clusters have then. That nobody loses an endpoint is told in
// test/upgrade.
func TestRename(t *testing.T) {
	w := newWorld(t)
	common := v1alpha1.DefaultLeaderNamespace
	if _, err := Join(t.Context(), w.east, w.invited(t)); err != nil {
		t.Fatal(err)
	}
	rename := func(more ...string) []string {
		return append([]string{"rename", "east", "--to", "orient", "--contexts", "hub,east"}, more...)
	}
	t.Run("a dry run changes nothing", func(t *testing.T) { w.renameShown(t, rename("--dry-run")) })
	t.Run("what cannot be", func(t *testing.T) {
		for name, bad := range map[string]struct {
			args  []string
			code  int
			words []string
		}{
			"another ClusterSet":      {rename("--clusterset", "navy"), exit.Usage, []string{"navy"}},
			"no leader":               {[]string{"rename", "east", "--to", "orient", "--contexts", "east"}, exit.Failed, []string{"leads this ClusterSet", "--contexts"}},
			"an unknown context":      {[]string{"rename", "east", "--to", "orient", "--contexts", "hub,eest"}, exit.Usage, []string{`did you mean "east"?`}},
			"no time to answer":       {rename("--timeout", "1ns"), exit.Failed, []string{"no answer within 1ns", "repeat the command"}},
			"another's credential":    {rename("--token", "default"), exit.Refused, []string{`"default"`}},
			"no cluster ID":           {[]string{"rename", "east", "--to", "Orient", "--contexts", "hub,east"}, exit.Refused, []string{"UPG-CHK-18"}},
			"a format of other verbs": {rename("-o", "name"), exit.Usage, []string{"json, yaml"}},
		} {
			t.Run(name, func(t *testing.T) {
				_, _, err := w.typed(t, bad.args...)
				wantError(t, err, bad.code, bad.words...)
				same(t, "east", w.idOfEast(t))
			})
		}
	})
	t.Run("a member that nobody looks at", func(t *testing.T) {
		create(t, w.hub, &v1alpha1.MemberClusterAnnounce{
			ObjectMeta: metav1.ObjectMeta{Namespace: common, Name: "member-announce-from-north"},
			ClusterID:  "north", ClusterSetID: "fleet", LeaderClusterID: "hub",
		})
		_, _, err := w.typed(t, rename("--dry-run")...)
		wantError(t, err, exit.Refused, `"north"`, "UPG-CHK-5")
		w.must(t, rename("--dry-run", "--unseen", "north")...)
		w.must(t, rename("--dry-run", "--unseen", "north", "--clusterset", "fleet")...)
		if err := w.hub.Delete(t.Context(), &v1alpha1.MemberClusterAnnounce{ObjectMeta: metav1.ObjectMeta{Namespace: common, Name: "member-announce-from-north"}}); err != nil {
			t.Fatal(err)
		}
		gone(t, w.hub, &v1alpha1.MemberClusterAnnounce{}, common, "member-announce-from-north")
	})
	t.Run("with a credential of that name", func(t *testing.T) {
		_, _, err := w.typed(t, rename("--token", "harbor", "--wait", "0")...) // what is to be waited for has only begun
		wantError(t, err, exit.Waiting, "repeat the command to go on")
		out := w.must(t, rename("--token", "harbor", "--wait", testTime.String(), "--timeout", testTime.String())...)
		if !strings.HasPrefix(out, "member east of ClusterSet fleet is called orient\n") {
			t.Error(out)
		}
		same(t, "orient", w.idOfEast(t))
		var account corev1.ServiceAccount
		get(t, w.hub, common, "harbor", &account)
		same(t, "orient", account.Annotations[v1alpha1.AnnotationClusterID])
		absent(t, w.hub, common, "east-token", &corev1.ServiceAccount{})
		gone(t, w.hub, &v1alpha1.MemberClusterAnnounce{}, common, "member-announce-from-east")
	})
}

// idOfEast is what the member calls itself.
func (w *world) idOfEast(t *testing.T) string {
	t.Helper()
	var set v1alpha2.ClusterSet
	get(t, w.east, v1alpha1.DefaultMemberNamespace, "fleet", &set)
	return set.Spec.ClusterID
}

// renameShown is the plan as a page and in both formats.
func (w *world) renameShown(t *testing.T, dryRun []string) {
	page := w.must(t, dryRun...)
	for _, part := range []string{"spec.clusterID east -> orient", "orient-token"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
	type plan struct {
		ClusterSet, From, To, Phase string
		Steps                       []struct {
			ID, State string
			Changes   []struct{ Do, Kind, Name string }
		}
	}
	var asJSON, asYAML plan
	if err := json.Unmarshal([]byte(w.must(t, append(dryRun, "-o", "json")...)), &asJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(w.must(t, append(dryRun, "--output", "yaml")...)), &asYAML); err != nil {
		t.Fatal(err)
	}
	same(t, asJSON, asYAML)
	same(t, []string{"fleet", "east", "orient"}, []string{asJSON.ClusterSet, asJSON.From, asJSON.To})
	if len(asJSON.Steps) == 0 || len(asJSON.Steps[0].Changes) == 0 {
		t.Errorf("no step changes anything: %+v", asJSON)
	}
	same(t, "east", w.idOfEast(t))
	absent(t, w.hub, v1alpha1.DefaultLeaderNamespace, "orient-token", &corev1.ServiceAccount{})
}
