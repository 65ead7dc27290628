package mc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// A plan is shown with every change and finding, and the same in JSON; what is done
// is one line. The whole way is told in test/upgrade.
func TestRenameShowsWhatItWouldDo(t *testing.T) {
	steps := []rollout.Step{
		{ID: "switch", Title: `member "east-1" calls itself "east1"`, Changes: []rollout.Change{{Do: rollout.Update, Kind: "ClusterSet", Lane: "east", Namespace: "kube-system", Name: "fleet",
			Fields: []rollout.Field{{Path: "spec.clusterID", From: "east-1", To: "east1"}}}}},
		{ID: "seen", Title: "every other member has it", Needs: []string{"switch"}, Findings: []rule.Finding{
			{Rule: "UPG-CHK-2", Severity: rule.Warn, Message: `ServiceAccount "x" is bound to "east-1"`, Remedy: "delete it"}}},
	}
	result := RenameResult{ClusterSet: "fleet", Old: "east-1", New: "east1", Decision: rollout.Decide(steps, rollout.Policy{})}
	result.Findings = result.Decision.Findings()
	var page bytes.Buffer
	result.write(&page, true)
	for _, line := range []string{"switch", "update ClusterSet kube-system/fleet in east: spec.clusterID east-1 -> east1", `WARN UPG-CHK-2: ServiceAccount "x" is bound to "east-1"; delete it`} {
		if !strings.Contains(page.String(), line) {
			t.Errorf("the page lacks %q:\n%s", line, page.String())
		}
	}
	var text bytes.Buffer
	if err := encode(&text, "json", result); err != nil {
		t.Fatal(err)
	}
	var read struct {
		From, To, Phase string
		Steps           []struct {
			ID, State string
			Changes   []struct{ Do, Kind string }
		}
		Findings []struct{ Rule string }
	}
	if err := json.Unmarshal(text.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	if read.From != "east-1" || read.To != "east1" || read.Phase != "Ready" || len(read.Steps) != 2 || read.Steps[0].Changes[0].Kind != "ClusterSet" || len(read.Findings) != 1 {
		t.Errorf("JSON is %s", text.String())
	}
	page.Reset()
	result.Phase = rollout.Done
	result.write(&page, false)
	if got, want := strings.SplitN(page.String(), "\n", 2)[0], "member east-1 of ClusterSet fleet is called east1"; got != want {
		t.Errorf("when it is done: %q", got)
	}
}

// Nothing is begun while a cluster cannot be reached, and nobody waits for it.
func TestRenameBeginsWithAllClusters(t *testing.T) {
	away := RenameCluster{Cluster: evidence.Cluster{Context: "hub", Failure: errors.New("connection refused")}}
	_, err := Rename(t.Context(), RenameOptions{Old: "east-1", New: "east1", Clusters: []RenameCluster{away}, Wait: testTime})
	wantError(t, err, exit.Failed, "hub", "connection refused", "repeat the command")
}
