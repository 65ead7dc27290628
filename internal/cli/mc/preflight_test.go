package mc

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// checks is what a person sees of a ClusterSet with real controllers: nothing
// while all is well, and each fault with its rule, its evidence and what to do.
func (w *world) checks(t *testing.T) {
	args := []string{"preflight", "--kubeconfig", w.lab.Kubeconfig(), "--contexts", "hub,east", "--timeout", testTime.String()}
	out, _, err := command(t, nil, args...)
	if err != nil || !strings.Contains(out, "27 of 27 rules hold") {
		t.Fatalf("of a healthy ClusterSet: %v\n%s", err, out)
	}

	w.comparesAntctl(t, args)
	create(t, w.hub, &v1alpha1.MemberClusterAnnounce{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultLeaderNamespace, Name: "member-announce-from-north"},
		ClusterID:  "north", ClusterSetID: "fleet", LeaderClusterID: "hub",
	})
	out, _, err = command(t, nil, args...)
	wantError(t, err, exit.Refused, "UPG-CHK-1")
	for _, part := range []string{
		`UPG-CHK-1  no ServiceAccount is bound to cluster ID "north"`, "→ make one: lockstep mc create membertoken --cluster-id north",
		"NOT READ", `member "north": none of the contexts that could be read is that member`,
	} {
		if !strings.Contains(out, part) {
			t.Errorf("does not say %q:\n%s", part, out)
		}
	}

	out, _, err = command(t, nil, append(args, "--only", "UPG-CHK-2,UPG-CHK-1", "-o", "json")...)
	wantError(t, err, exit.Refused)
	var report struct {
		ClusterSet string
		Checked    []string
		Findings   []struct{ Rule, Severity, Cluster, Remedy string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	same(t, []string{"UPG-CHK-1", "UPG-CHK-2"}, report.Checked)
	if len(report.Findings) != 1 || report.Findings[0].Severity != "REFUSE" || report.Findings[0].Cluster != "north" || report.ClusterSet != "fleet" {
		t.Errorf("%+v", report)
	}
	if _, _, err := command(t, nil, append(args, "--only", "UPG-CHK-2")...); err != nil {
		t.Errorf("the other rule holds: %v", err)
	}
	var announce v1alpha1.MemberClusterAnnounce
	get(t, w.hub, v1alpha1.DefaultLeaderNamespace, "member-announce-from-north", &announce)
	if err := w.hub.Delete(t.Context(), &announce); err != nil {
		t.Fatal(err)
	}
	gone(t, w.hub, &v1alpha1.MemberClusterAnnounce{}, v1alpha1.DefaultLeaderNamespace, "member-announce-from-north")
}

// comparesAntctl tells of a command line that is newer than a controller of its kind,
// and of none that is as old.
func (w *world) comparesAntctl(t *testing.T, preflight []string) {
	labels := map[string]string{"app": "antrea", "component": deploymentName}
	controller := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultLeaderNamespace, Name: deploymentName, Labels: labels},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32), Paused: true, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "antrea/antrea-mc-controller:v2.4.0", Args: []string{"leader"}}}}}},
	}
	create(t, w.hub, controller)
	for version, newer := range map[string]bool{"v2.5.0": true, "2.5": true, "v2.4.9": false, "": false} {
		out, _, err := command(t, nil, append(preflight, "--only", "UPG-CHK-17", "--antctl-version", version)...)
		if err != nil || strings.Contains(out, "is newer than the leader controller of") != newer {
			t.Errorf("antctl %q: %v\n%s", version, err, out)
		}
	}
	if err := w.hub.Delete(t.Context(), controller); err != nil {
		t.Fatal(err)
	}
	gone(t, w.hub, &appsv1.Deployment{}, controller.Namespace, controller.Name)
}

func TestPreflightRefusesWrongUse(t *testing.T) {
	_, hub := cluster(t)
	config, err := clientcmd.LoadFromFile(hub.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts["again"] = config.Contexts[config.CurrentContext].DeepCopy()
	path := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]struct {
		args  []string
		words []string
	}{
		"an unknown context":             {[]string{"--contexts", "nowhere"}, []string{"nowhere"}},
		"a rule that was mistyped":       {[]string{"--only", "upg-chk-7"}, []string{`did you mean "UPG-CHK-7"?`}},
		"a rule of another kind":         {[]string{"--only", "everything"}, []string{"UPG-CHK-1 to UPG-CHK-27"}},
		"an unknown format":              {[]string{"-o", "html"}, []string{"json, yaml, wide"}},
		"one cluster under two contexts": {[]string{"--contexts", "again," + config.CurrentContext}, []string{"same cluster"}},
		"a ClusterSet that is not there": {[]string{"--clusterset", "nobodys"}, []string{"nobodys", "mc join"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := command(t, nil, append([]string{"preflight", "--kubeconfig", path}, bad.args...)...)
			wantError(t, err, exit.Usage, bad.words...)
			if out != "" {
				t.Errorf("stdout has %q", out)
			}
		})
	}
}

// What decides the exit code is the heaviest finding.
func TestPreflightVerdict(t *testing.T) {
	lead := preflight.Parts{ClusterSet: "fleet", Leader: preflight.Part{Context: "hub"}}
	for name, c := range map[string]struct {
		parts    preflight.Parts
		findings []rule.Finding
		code     int
	}{
		"nothing":           {lead, nil, exit.Done},
		"broken, no reason": {lead, []rule.Finding{{Rule: "UPG-CHK-2", Severity: rule.Warn, Broken: true}}, exit.Done},
		"to wait":           {lead, []rule.Finding{{Rule: "UPG-CHK-2", Severity: rule.Warn}, {Rule: "UPG-CHK-8", Severity: rule.Wait}}, exit.Waiting},
		"to stop":           {lead, []rule.Finding{{Rule: "UPG-CHK-8", Severity: rule.Wait}, {Rule: "UPG-CHK-1", Severity: rule.Refuse}}, exit.Refused},
		"not read":          {lead, []rule.Finding{{Rule: "UPG-CHK-1", Severity: rule.Refuse, Unknown: true}}, exit.Refused},
		"no cluster read":   {preflight.Parts{Leader: preflight.Part{Unreachable: "refused"}}, []rule.Finding{{Rule: "UPG-CHK-1", Severity: rule.Refuse, Unknown: true}}, exit.Failed},
	} {
		if got := exit.Code(PreflightReport{Parts: c.parts, Findings: c.findings}.Verdict()); got != c.code {
			t.Errorf("%s: code %d, want %d", name, got, c.code)
		}
	}
}

// One reason for which much was not read is one line, with all rules that miss it.
func TestPreflightShowsAGapOnce(t *testing.T) {
	read := evidence.Result{Evidence: preflight.Evidence{CLI: rule.Known(""), Members: []preflight.Member{{ID: "east", Cluster: preflight.Cluster{Unreachable: "connection refused"}}}}}
	read.Leader.Unreachable = "no route to host"
	var page strings.Builder
	report := NewPreflightReport(read)
	if err := report.write(&page, false); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(page.String(), "connection refused"); n != 1 {
		t.Errorf("told %d times:\n%s", n, page.String())
	}
	if !slices.ContainsFunc(report.Findings, func(f rule.Finding) bool { return f.Rule == "UPG-CHK-27" && f.Unknown }) {
		t.Error("the report itself left something out")
	}
}

// What other clusters name things cannot steer the terminal, and a page that
// cannot be written is an error.
func TestPreflightPage(t *testing.T) {
	const evil = "east\x1b[2J\n"
	report := PreflightReport{
		Parts:    preflight.Parts{ClusterSet: evil, Members: []preflight.Part{{ID: evil}}},
		Findings: []rule.Finding{{Rule: "UPG-CHK-1", Severity: rule.Refuse, Message: evil, Evidence: []string{evil}, Remedy: evil, Objects: []rule.Object{{Kind: "Secret", Name: evil}}}},
	}
	var page strings.Builder
	if err := report.write(&page, true); err != nil {
		t.Fatal(err)
	}
	for _, r := range page.String() {
		if r != '\n' && unicode.IsControl(r) {
			t.Errorf("%q gets through", r)
		}
	}
	if err := report.write(full{}, true); err == nil {
		t.Error("nothing was written, and nobody says so")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// antctl must not be newer than a controller of its kind.
func TestPreflightComparesAntctl(t *testing.T) {
	read := evidence.Result{Evidence: preflight.Evidence{CLI: rule.Known("v2.8.0")}}
	read.Leader.Kubernetes = rule.Known("v1.34.1")
	read.Leader.Controllers = rule.Known([]preflight.Controller{{Role: "leader", Upstream: true, Version: "v2.7.0"}})
	findings := NewPreflightReport(read, "UPG-CHK-17").Findings
	if len(findings) != 1 || !strings.Contains(findings[0].Message, "antctl v2.8.0 is newer") {
		t.Errorf("%+v", findings)
	}
}
