package mc

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/lab"
)

const (
	memberDeployment = "deployment.apps/" + deploymentName
	clusterSetKind   = "customresourcedefinition.apiextensions.k8s.io/" + clusterSetCRD
)

// asked are the webhook configurations among outcomes.
func asked(outcomes map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(outcomes)), func(name string) bool {
		return !strings.Contains(name, "webhookconfiguration.")
	})
}

// TestDeployAndUndeployOfAMember gives every flag of the two verbs.
func TestDeployAndUndeployOfAMember(t *testing.T) {
	c, hub := onlyHub(t)
	awaitDefaults(t, c)
	before := inventory(t, c)
	const ns = "the-member"
	deploy := func(more ...string) []string {
		return append([]string{"deploy", "membercluster", "-n", ns}, more...)
	}
	undeploy := func(more ...string) []string {
		return append([]string{"undeploy", "membercluster", "-n", ns}, more...)
	}
	t.Run("a dry run changes nothing, and tells it in each format", func(t *testing.T) {
		told := outcomesIn(t, "json", run(t, hub, deploy("--dry-run", "-o", "json")...))
		same(t, told, outcomesIn(t, "yaml", run(t, hub, deploy("--dry-run", "-o", "yaml")...)))
		var names, rows []string
		for _, o := range told {
			names, rows = append(names, o.Kind+"/"+o.Name), append(rows, o.Kind+"/"+o.Name+" created")
		}
		same(t, names, strings.Split(strings.TrimSpace(run(t, hub, deploy("--dry-run", "-o", "name")...)), "\n"))
		same(t, rows, strings.Split(strings.TrimSpace(run(t, hub, deploy("--dry-run")...)), "\n"))
		same(t, before, inventory(t, c))
	})
	t.Run("the API server asks the controller where it is to", func(t *testing.T) {
		same(t, 0, len(asked(outcomesOf(t, run(t, hub, deploy("--dry-run", "-o", "json")...)))))
		if with := asked(outcomesOf(t, run(t, hub, deploy("--dry-run", "--admission", "-o", "json")...))); len(with) == 0 {
			t.Error("no webhook configuration is among what would be made")
		}
	})
	t.Run("the Namespace is made unless told otherwise", func(t *testing.T) {
		_, _, err := command(t, hub, deploy("--create-namespace=false")...)
		wantError(t, err, exit.Failed, `no Namespace "the-member"`, "--create-namespace")
		same(t, before, inventory(t, c))
	})
	t.Run("it has waited until the controller runs, from another registry", func(t *testing.T) {
		same(t, "created", outcomesOf(t, run(t, hub, deploy("--image", "registry.example/lockstep:next", "-o", "json")...))["namespace/"+ns])
		var deployment appsv1.Deployment
		get(t, c, ns, deploymentName, &deployment)
		same(t, "registry.example/lockstep:next", deployment.Spec.Template.Spec.Containers[0].Image)
		if deployment.Status.AvailableReplicas == 0 {
			t.Error("no Pod of it runs")
		}
		all(t, "unchanged", outcomesOf(t, run(t, hub, deploy("--image", "registry.example/lockstep:next", "-o", "json", "--create-namespace=false")...)))
	})
	t.Run("it waits no longer than it is told", func(t *testing.T) {
		full := namespace(t, c, "full")
		create(t, c, noPods(full))
		_, _, err := command(t, hub, "deploy", "membercluster", "-n", full, "--wait", "1s")
		wantError(t, err, exit.Waiting, "kubectl -n "+full+" describe pods", "repeating the command goes on waiting")
		run(t, hub, "deploy", "membercluster", "-n", full, "--wait", "0")
		run(t, hub, "undeploy", "membercluster", "-n", full)
		get(t, c, "", full, &corev1.Namespace{}) // somebody else made it
		if err := c.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: full}}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("it waits for Pods to go", func(t *testing.T) { heldPod(t, c, hub, undeploy("--wait", "1s")) })
	settles(t, c, before)
	t.Run("CRDs and the Namespace can be kept", func(t *testing.T) {
		all(t, "created", outcomesOf(t, run(t, hub, deploy("--wait", "0", "--admission", "-o", "json")...)))
		outcomes := outcomesOf(t, run(t, hub, undeploy("--keep-crds", "-o", "json")...))
		same(t, "kept", outcomes[clusterSetKind])
		same(t, "deleted", outcomes[memberDeployment])
		if len(asked(outcomes)) == 0 {
			t.Error("what asks the controller is left")
		}
		for _, name := range asked(outcomes) {
			same(t, "deleted", outcomes[name])
		}
		get(t, c, "", ns, &corev1.Namespace{})
	})
	t.Run("who does not wait keeps the Namespace", func(t *testing.T) {
		outcomes := outcomesOf(t, run(t, hub, undeploy("--wait", "0", "-o", "json")...))
		same(t, "deleted", outcomes[clusterSetKind])
		same(t, "", outcomes["namespace/"+ns])
		get(t, c, "", ns, &corev1.Namespace{})
		told := outcomesIn(t, "yaml", run(t, hub, undeploy("-o", "yaml")...))
		for _, o := range told[:len(told)-1] {
			same(t, "absent", string(o.Outcome))
		}
		same(t, Touched{Kind: "namespace", Name: ns, Outcome: "deleted"}, told[len(told)-1])
		settles(t, c, before)
	})
	t.Run("manifests of a file, and of a pipe", func(t *testing.T) { deployMemberFile(t, c, hub) })
}

// heldPod is a Pod that something holds: undeploying does not call it gone.
func heldPod(t *testing.T, c client.Client, hub *lab.Cluster, undeploy []string) {
	const ns = "the-member"
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace(ns)); err != nil || len(pods.Items) == 0 {
		t.Fatalf("%d Pods, %v", len(pods.Items), err)
	}
	pod := &pods.Items[0]
	eventuallyTrue(t, "the Pod is held", func() bool { return c.Patch(t.Context(), pod, heldBy(`["example.com/hold"]`)) == nil })
	_, _, err := command(t, hub, undeploy...)
	wantError(t, err, exit.Waiting, "Pods of the controller are still there", "repeat the command")
	get(t, c, "", ns, &corev1.Namespace{})
	eventuallyTrue(t, "the Pod is let go", func() bool { return c.Patch(t.Context(), pod, heldBy("null")) == nil })
	out := run(t, hub, append(slices.Clone(undeploy[:len(undeploy)-2]), "-o", "name")...)
	if rows := strings.Split(strings.TrimSpace(out), "\n"); rows[len(rows)-1] != "namespace/"+ns {
		t.Errorf("the Namespace is not the last to go:\n%s", out)
	}
	absent(t, c, "", ns, &corev1.Namespace{})
}

func deployMemberFile(t *testing.T, c client.Client, hub *lab.Cluster) {
	before := inventory(t, c)
	manifest := []byte(strings.ReplaceAll(foreignManifest, "antrea-multicluster", "kube-system"))
	path := write(t, "member.yaml", manifest)
	want := []string{"namespace/elsewhere created", "serviceaccount/other created", "deployment.apps/other-controller created"}
	for name, from := range map[string]struct {
		file  string
		stdin []byte
	}{"file": {path, nil}, "pipe": {"-", manifest}} {
		t.Run(name, func(t *testing.T) {
			typed := func(verb string, more ...string) string {
				args := append([]string{verb, "membercluster", "-n", "elsewhere", "--manifest-file", from.file}, more...)
				out, errOut, err := fed(t, hub, from.stdin, args...)
				if err != nil {
					t.Fatalf("%v\n%s", err, errOut)
				}
				return out
			}
			same(t, want, strings.Split(strings.TrimSpace(typed("deploy", "--dry-run")), "\n"))
			same(t, before, inventory(t, c))
			same(t, want, strings.Split(strings.TrimSpace(typed("deploy")), "\n"))
			get(t, c, "elsewhere", "other", &corev1.ServiceAccount{})
			all(t, "unchanged", outcomesOf(t, typed("deploy", "-o", "json")))
			typed("undeploy")
			settles(t, c, before)
		})
	}
	_, _, err := fed(t, hub, nil, "deploy", "membercluster", "-n", "elsewhere", "-f", "-")
	wantError(t, err, exit.Usage, "no object")
}

// heldBy gives an object these finalizers, as JSON.
func heldBy(finalizers string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))
}
