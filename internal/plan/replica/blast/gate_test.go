package blast_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/blast"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// object of Cluster API in Namespace fleet; more is put into the metadata.
func object(kind, name, more, rest string) string {
	return fmt.Sprintf(`{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":%q,"metadata":{"namespace":"fleet","name":%q,"uid":%q%s}%s}`, kind, name, "uid-"+name, more, rest)
}

func ownedBy(kind, name string) string {
	return fmt.Sprintf(`,"finalizers":["machine.cluster.x-k8s.io"],"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":%q,"name":%q,"uid":%q,"controller":true,"blockOwnerDeletion":true}]`, kind, name, "uid-"+name)
}

const (
	deleting = `,"deletionTimestamp":"2024-01-01T00:00:00Z"`
	two      = `,"spec":{"replicas":2},"status":{"replicas":2,"readyReplicas":2,"updatedReplicas":2}`
	stands   = `,"spec":{"infrastructureRef":{"kind":"DCSMachine","name":"vm1"}},"status":{"nodeRef":{"name":"node1"}}`
)

// whole is a workload cluster in step: a MachineDeployment, its MachineSet, two
// Machines, the infrastructure of one, and a pool with its disk.
func whole() map[string]string {
	return map[string]string{
		"md":   object("MachineDeployment", "md", "", two),
		"ms":   object("MachineSet", "ms", ownedBy("MachineDeployment", "md"), two),
		"m1":   object("Machine", "m1", ownedBy("MachineSet", "ms"), stands),
		"m2":   object("Machine", "m2", ownedBy("MachineSet", "ms"), ""),
		"vm1":  strings.Replace(object("DCSMachine", "vm1", ownedBy("Machine", "m1"), ""), "cluster.x-k8s.io/v1beta1", "infrastructure.cluster.x-k8s.io/v1", 1),
		"pool": `{"apiVersion":"infrastructure.cluster.x-k8s.io/v1","kind":"DCSIpHostnamePool","metadata":{"namespace":"fleet","name":"pool","uid":"p"},"status":{"persistentDiskStatus":[{"ip":"10.0.0.7","slot":1,"name":"d1","ownerMachineName":"vm1"}]}}`,
		"mark": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"kube-public","name":"etcd-sync","uid":"c"}}`,
		"plat": `{"apiVersion":"platform.tkestack.io/v1","kind":"Machine","metadata":{"name":"global-1","uid":"g"},"status":{"phase":"Running"}}`,
	}
}

func with(all map[string]string, key, value string) map[string]string {
	if all[key] = value; value == "" {
		delete(all, key)
	}
	return all
}

func predict(side, other map[string]string) blast.Prediction {
	var namespaces [][]byte
	for _, value := range side {
		if strings.Contains(value, `"kind":"Namespace"`) {
			namespaces = append(namespaces, []byte(value))
		}
	}
	w := blast.NewWorld(namespaces)
	for key, value := range side {
		o := blast.Object{Key: key, Value: []byte(value), Mirrored: key != "mark" && key != "plat" && key != "own"}
		if there, ok := other[key]; ok {
			o.Other = []byte(there)
		}
		w.Add(o)
	}
	return w.Predict()
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// evidence of a pair that may be detached, but for what the two sides hold.
func evidence(standby, primary map[string]string) blast.Evidence {
	led := noon
	e := blast.Evidence{
		Now: noon.Add(2 * time.Minute), At: noon.Add(time.Minute), Repaired: noon.Add(-time.Second), Source: replica.Primary, Target: replica.Standby,
		Verdict: replica.Consistent, Standby: predict(standby, primary), Primary: predict(primary, standby),
	}
	e.Standby.Led = &led
	return e
}

// found are the rules of findings, with their weight.
func found(findings []rule.Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, fmt.Sprint(f.Rule, " ", f.Severity))
	}
	slices.SortFunc(all, rule.CompareIDs)
	return strings.Join(slices.Compact(all), ", ")
}

// Each rule refuses what it is there for, and not what is just beside it.
//
// covers: D-10, D-12, D-13, D-14, D-15, D-16, F-01, F-02, F-03, F-04, F-05, F-06
func TestGateOfWhatIsStored(t *testing.T) {
	dying := object("Machine", "m1", ownedBy("MachineSet", "ms")+deleting, stands)
	three := strings.NewReplacer("2", "3").Replace(two)
	for name, c := range map[string]struct {
		standby, primary map[string]string
		want             string
	}{
		"a pair in step": {whole(), whole(), ""},
		"F-01: a MachineSet is missed, its Machines go, and others are made": {with(whole(), "ms", ""), whole(),
			"D-12 REFUSE, F-01 REFUSE, F-03 REFUSE, F-04 REFUSE, F-05 REFUSE"},
		"F-01: an owner was made anew": {with(whole(), "ms", strings.Replace(whole()["ms"], `"uid-ms"`, `"uid-new"`, 1)), whole(),
			"D-12 REFUSE, D-14 REFUSE, F-01 REFUSE, F-03 REFUSE, F-04 REFUSE, F-05 REFUSE"},
		"F-01: of two owners one is left": {with(whole(), "m2", object("Machine", "m2", strings.Replace(ownedBy("MachineSet", "ms"), "[{", `[{"apiVersion":"v1","kind":"Secret","name":"s","uid":"s"},{`, 1), "")), whole(),
			"D-12 REFUSE"},
		"F-01: only infrastructure is lost, no Machine": {with(whole(), "vm1", strings.Replace(whole()["vm1"], "uid-m1", "uid-mx", 1)), whole(),
			"D-12 REFUSE, F-01 REFUSE, F-05 REFUSE"},
		"F-02: a Machine is marked here only, and replaced": {with(whole(), "m1", dying), whole(),
			"D-13 REFUSE, F-01 REFUSE, F-02 REFUSE, F-03 REFUSE, F-04 REFUSE, F-05 REFUSE"},
		"F-02: marked on both sides, the primary is changing": {with(whole(), "m1", dying), with(whole(), "m1", dying),
			"D-15 REFUSE, F-01 REFUSE, F-03 REFUSE, F-05 REFUSE, F-06 WARN"},
		"F-02: a mark on the primary only is no deletion here": {whole(), with(whole(), "m1", dying), "D-15 REFUSE, F-06 WARN"},
		"F-03: a Machine is missed":                            {with(whole(), "m2", ""), whole(), "F-03 REFUSE, F-05 REFUSE"},
		"F-03: a Machine too many": {with(whole(), "m3", object("Machine", "m3", ownedBy("MachineSet", "ms"), "")), whole(),
			"F-03 REFUSE, F-05 REFUSE"},
		"F-03: of another owner, it is none too many": {with(whole(), "m3", object("Machine", "m3", "", "")), whole(), ""},
		"F-03: the MachineDeployment wants three": {with(whole(), "md", object("MachineDeployment", "md", "", three)), with(whole(), "md", object("MachineDeployment", "md", "", three)),
			"F-03 REFUSE, F-05 REFUSE, F-06 WARN"},
		"D-10: one of the standby's is not running": {with(whole(), "plat", strings.Replace(whole()["plat"], "Running", "Failed", 1)), whole(), "D-10 REFUSE"},
		"D-10: an unknown phase of the primary's":   {whole(), with(whole(), "plat", strings.Replace(whole()["plat"], "Running", "Odd", 1)), "D-10 REFUSE"},
		"D-14: owned by the standby's own": {with(with(whole(), "own", object("Cluster", "global", "", "")), "m3", object("Machine", "m3", ownedBy("Cluster", "global"), "")),
			whole(), "D-14 REFUSE"},
		"D-15: a roll-out": {whole(), with(whole(), "ms", strings.Replace(whole()["ms"], `"updatedReplicas":2`, `"updatedReplicas":1`, 1)), "D-15 REFUSE"},
		"D-15: two of two are not ready on the standby, whose status nobody writes": {with(whole(), "ms", strings.Replace(whole()["ms"], `"readyReplicas":2`, `"readyReplicas":1`, 1)), whole(), ""},
		"D-16: no guard":                                    {with(whole(), "mark", ""), whole(), "D-16 REFUSE"},
		"a value that cannot be read":                       {with(whole(), "s", "k8s:enc:x"), whole(), "F-05 REFUSE"},
		"a value of the standby's own that cannot be read":  {with(whole(), "own", "k8s:enc:x"), whole(), ""},
		"an object of the standby's own without its owner":  {with(whole(), "own", object("Machine", "x", ownedBy("MachineSet", "no"), "")), whole(), ""},
		"a Namespace that ends takes all in it along":       {with(whole(), "ns", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"fleet","uid":"n"`+deleting+`}}`), whole(), "F-01 REFUSE, F-02 REFUSE, F-04 REFUSE, F-05 REFUSE"},
		"a Namespace that ends takes nothing from another":  {with(whole(), "ns", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other","uid":"n"`+deleting+`}}`), whole(), "F-02 REFUSE, F-05 REFUSE"},
		"an object without finalizers that was marked here": {with(whole(), "m3", object("Other", "o", deleting, "")), with(whole(), "m3", object("Other", "o", "", "")), "D-13 REFUSE, F-02 REFUSE, F-05 REFUSE"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := found(blast.Detach(evidence(c.standby, c.primary))); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
				for _, e := range predict(c.standby, c.primary).Effects {
					t.Log(e)
				}
			}
		})
	}
}

// covers: D-11, D-16, D-20
func TestGateOfWhatIsSo(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*blast.Evidence)
		want   string
	}{
		"nothing":                          {func(*blast.Evidence) {}, ""},
		"not consistent":                   {func(e *blast.Evidence) { e.Verdict = replica.Inconsistent }, "D-11 REFUSE"},
		"one cut":                          {func(e *blast.Evidence) { e.Verdict = replica.Unknown }, "D-11 WAIT"},
		"a foreign write":                  {func(e *blast.Evidence) { e.Foreign = 1 }, "D-11 REFUSE"},
		"ten minutes old":                  {func(e *blast.Evidence) { e.At = e.Now.Add(-10 * time.Minute) }, ""},
		"older than ten minutes":           {func(e *blast.Evidence) { e.At = e.Now.Add(-10*time.Minute - 1) }, "D-11 WAIT"},
		"the wrong side":                   {func(e *blast.Evidence) { e.Target = replica.Primary }, "D-20 REFUSE"},
		"no role":                          {func(e *blast.Evidence) { e.Target = "" }, "D-20 REFUSE"},
		"a primary that is not marked":     {func(e *blast.Evidence) { e.Source = "" }, ""},
		"two standbys":                     {func(e *blast.Evidence) { e.Source = replica.Standby }, "D-20 REFUSE"},
		"a controller manager of before":   {func(e *blast.Evidence) { e.Repaired = noon }, "DET-E WAIT"},
		"nobody knows of the last repair":  {func(e *blast.Evidence) { e.Repaired = time.Time{} }, "DET-E WAIT"},
		"an unknown controller manager":    {func(e *blast.Evidence) { e.Standby.Led = nil }, "DET-E WAIT"},
		"unread values that were accepted": {func(e *blast.Evidence) { e.Standby.Unread, e.AcceptUnread = 1, true }, "F-05 WARN"},
	} {
		t.Run(name, func(t *testing.T) {
			e := evidence(whole(), whole())
			c.change(&e)
			if got := found(blast.Detach(e)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// The blast radius names Node, infrastructure and disks.
//
// covers: F-04
func TestBlastRadius(t *testing.T) {
	var lines []string
	for _, e := range predict(with(whole(), "ms", ""), whole()).Effects {
		lines = append(lines, fmt.Sprintf("%s [%s]", e, e.By))
	}
	want := []string{
		"delete Machine.cluster.x-k8s.io fleet/m1 (Node node1; DCSMachine vm1; DCSIpHostnamePool.infrastructure.cluster.x-k8s.io fleet/pool, 10.0.0.7, slot 1: disk d1): its owner MachineSet.cluster.x-k8s.io fleet/ms (UID uid-ms) is absent; held back by machine.cluster.x-k8s.io [garbage collector]",
		"delete Machine.cluster.x-k8s.io fleet/m2: its owner MachineSet.cluster.x-k8s.io fleet/ms (UID uid-ms) is absent; held back by machine.cluster.x-k8s.io [garbage collector]",
		"delete DCSMachine.infrastructure.cluster.x-k8s.io fleet/vm1: its owner Machine.cluster.x-k8s.io fleet/m1 (UID uid-m1) is deleted; held back by machine.cluster.x-k8s.io [controllers]",
		"create 2 of MachineDeployment.cluster.x-k8s.io fleet/md: it wants 2 machines and would have 0 [controllers]",
	}
	slices.Sort(lines)
	slices.Sort(want)
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// covers: D-21, D-22
func TestAfterADetach(t *testing.T) {
	left := []rule.Object{{Kind: "Deployment", Namespace: "cpaas-system", Name: "etcd-sync"}}
	if got := found(blast.Uninstalled(left)) + ", " + found(blast.Upgrade(left)); got != "D-21 WAIT, D-22 REFUSE" {
		t.Error(got)
	}
	if got := append(blast.Uninstalled(nil), blast.Upgrade(nil)...); len(got) > 0 {
		t.Error(got)
	}
}
