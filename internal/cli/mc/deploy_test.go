package mc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	manifests "github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
)

// inventory is everything a deployment could leave in a cluster, as
// "Kind namespace/name".
func inventory(t *testing.T, c client.Client) []string {
	t.Helper()
	var all []string
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"},
		{Version: "v1", Kind: "ServiceAccount"},
		{Version: "v1", Kind: "ConfigMap"},
		{Version: "v1", Kind: "Secret"},
		{Version: "v1", Kind: "Service"},
		{Version: "v1", Kind: "Pod"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			all = append(all, kind.Kind+" "+item.GetNamespace()+"/"+item.GetName())
		}
	}
	slices.Sort(all)
	return all
}

// settles waits until a cluster holds what it held: CRDs and ReplicaSets go
// after those who deleted them have been answered.
func settles(t *testing.T, c client.Client, want []string) {
	t.Helper()
	var got []string
	err := until(t.Context(), testTime, func(context.Context) (bool, error) {
		got = inventory(t, c)
		return slices.Equal(want, got), nil
	})
	if err != nil {
		same(t, want, got)
	}
}

// awaitDefaults waits until a new cluster holds what Kubernetes puts into every
// Namespace; it would be taken for something new.
func awaitDefaults(t *testing.T, c client.Client) {
	t.Helper()
	for _, ns := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		for name, object := range map[string]client.Object{"default": &corev1.ServiceAccount{}, "kube-root-ca.crt": &corev1.ConfigMap{}} {
			eventuallyTrue(t, ns+" holds "+name, func() bool {
				return c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, object) == nil
			})
		}
	}
}

func outcomesOf(t *testing.T, text string) map[string]string {
	t.Helper()
	var printed struct{ Objects []Touched }
	if err := json.Unmarshal([]byte(text), &printed); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	outcomes := map[string]string{}
	for _, o := range printed.Objects {
		outcomes[o.Kind+"/"+o.Name] = string(o.Outcome)
	}
	return outcomes
}

func all(t *testing.T, outcome string, outcomes map[string]string, but ...string) {
	t.Helper()
	if len(outcomes) == 0 {
		t.Error("nothing was told")
	}
	for name, got := range outcomes {
		if got != outcome && !slices.Contains(but, name) {
			t.Errorf("%s %s, want %s", name, got, outcome)
		}
	}
}

// onlyHub is a lab of its own: controllers come and go with all their kinds.
func onlyHub(t *testing.T) (client.WithWatch, *lab.Cluster) {
	t.Helper()
	hub := labtest.Cluster(t, labtest.Start(t, labtest.Options{Clusters: []string{"hub"}}), "hub")
	config := hub.RESTConfig()
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return c, hub
}

func run(t *testing.T, hub *lab.Cluster, args ...string) string {
	t.Helper()
	out, errOut, err := command(t, hub, args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, errOut)
	}
	return out
}

// TestDeployAndUndeploy is the life of both controllers in one cluster.
//
// covers: CLI-5.6, WK-17
func TestDeployAndUndeploy(t *testing.T) {
	c, hub := onlyHub(t)
	awaitDefaults(t, c)
	before := inventory(t, c)
	leader := []string{"deploy", "leadercluster", "-n", "the-area"}
	member := []string{"deploy", "membercluster", "-n", "kube-system"}
	unleader := []string{"undeploy", "leadercluster", "-n", "the-area"}
	unmember := []string{"undeploy", "membercluster", "-n", "kube-system"}
	const asking = "validatingwebhookconfiguration.admissionregistration.k8s.io/antrea-multicluster-antrea-mc-validating-webhook-configuration-the-area"
	with := func(args []string, more ...string) []string { return append(slices.Clone(args), more...) }

	t.Run("a dry run changes nothing", func(t *testing.T) {
		all(t, "created", outcomesOf(t, run(t, hub, with(leader, "--dry-run", "-o", "json")...)))
		same(t, "created", outcomesOf(t, run(t, hub, with(leader, "--dry-run", "--admission", "-o", "json")...))[asking])
		same(t, before, inventory(t, c))
	})
	t.Run("the Namespace is made unless told otherwise", func(t *testing.T) {
		_, _, err := command(t, hub, with(leader, "--create-namespace=false")...)
		wantError(t, err, exit.Failed, `no Namespace "the-area"`, "--create-namespace")
		same(t, before, inventory(t, c))
	})
	t.Run("deployed where it was asked for", func(t *testing.T) {
		out, errOut, err := command(t, hub, leader...)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := manifests.Verify(manifests.Leader, false)
		if err != nil || !strings.Contains(errOut, digest) || !strings.Contains(errOut, "next: lockstep mc init -n the-area") {
			t.Errorf("%v: %s", err, errOut)
		}
		rows := strings.Split(strings.TrimSpace(out), "\n")
		same(t, "namespace/the-area created", rows[0])
		same(t, "deployment.apps/antrea-mc-controller created", rows[len(rows)-1])
	})
	t.Run("deploying again changes nothing", func(t *testing.T) {
		all(t, "unchanged", outcomesOf(t, run(t, hub, with(leader, "-o", "json")...)))
		all(t, "unchanged", outcomesOf(t, run(t, hub, with(leader, "-o", "json", "--dry-run")...)))
	})
	t.Run("another image changes one object", func(t *testing.T) {
		for _, more := range [][]string{{"--dry-run"}, {}} {
			outcomes := outcomesOf(t, run(t, hub, with(leader, append(more, "--image", "lockstep:next", "-o", "json")...)...))
			same(t, "configured", outcomes["deployment.apps/antrea-mc-controller"])
			all(t, "unchanged", outcomes, "deployment.apps/antrea-mc-controller")
		}
	})
	t.Run("one Namespace holds one role", func(t *testing.T) {
		_, _, err := command(t, hub, "deploy", "membercluster", "-n", "the-area")
		wantError(t, err, exit.Refused, "controller of a leader")
		_, _, err = command(t, hub, "undeploy", "membercluster", "-n", "the-area")
		wantError(t, err, exit.Refused, "controller of a leader")
	})
	t.Run("the member beside it", func(t *testing.T) { run(t, hub, member...) })
	t.Run("refused while a ClusterSet is there", func(t *testing.T) {
		run(t, hub, "init", "-n", "the-area", "--clusterset", "fleet", "--clusterid", "hub", "--wait", "0")
		there := inventory(t, c)
		_, _, err := command(t, hub, unleader...)
		wantError(t, err, exit.Refused, `ClusterSet "fleet" is there`, "lockstep mc destroy --clusterset fleet -n the-area")
		same(t, there, inventory(t, c))
		run(t, hub, "destroy", "-n", "the-area", "--clusterset", "fleet")
	})
	t.Run("what the member needs stays", func(t *testing.T) {
		run(t, hub, "create", "membertoken", "east-token", "-n", "the-area", "--cluster-id", "east")
		outcomes := outcomesOf(t, run(t, hub, with(unleader, "-o", "json")...))
		same(t, "kept", outcomes["customresourcedefinition.apiextensions.k8s.io/clustersets.multicluster.crd.antrea.io"])
		same(t, "deleted", outcomes["customresourcedefinition.apiextensions.k8s.io/resourceexports.multicluster.crd.antrea.io"])
		same(t, "deleted", outcomes["serviceaccount/east-token"])
		same(t, "deleted", outcomes["namespace/the-area"])
	})
	t.Run("refused while there are objects of its kinds", func(t *testing.T) {
		export := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cart"}}
		create(t, c, export)
		_, _, err := command(t, hub, unmember...)
		wantError(t, err, exit.Refused, `ServiceExport "default/cart"`)
		if err := c.Delete(t.Context(), export); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("nothing is left behind", func(t *testing.T) {
		run(t, hub, unmember...)
		settles(t, c, before)
		all(t, "absent", outcomesOf(t, run(t, hub, with(unmember, "-o", "json")...)))
	})
	t.Run("CRDs and a Namespace can be kept", func(t *testing.T) {
		same(t, "created", outcomesOf(t, run(t, hub, with(leader, "--wait", "0", "--admission", "-o", "json")...))[asking])
		run(t, hub, "create", "membertoken", "east-token", "-n", "the-area", "--cluster-id", "east")
		outcomes := outcomesOf(t, run(t, hub, with(unleader, "--keep-crds", "-o", "json")...))
		same(t, "deleted", outcomes[asking])
		same(t, "kept", outcomes["customresourcedefinition.apiextensions.k8s.io/clustersets.multicluster.crd.antrea.io"])
		get(t, c, "", "the-area", &corev1.Namespace{})
		hasToken(t, c, "the-area", true)
	})
	t.Run("a Namespace in which somebody lives stays", func(t *testing.T) {
		for kind, mine := range map[string]client.Object{"ConfigMap": &corev1.ConfigMap{}, "Role": &rbacv1.Role{}} {
			mine.SetNamespace("the-area")
			mine.SetName("mine")
			create(t, c, mine)
			out := run(t, hub, unleader...)
			if !strings.Contains(out, fmt.Sprintf("namespace/the-area kept (it holds %s %q)", kind, "mine")) {
				t.Error(out)
			}
			if err := c.Delete(t.Context(), mine); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("manifests of a file", func(t *testing.T) { deployFile(t, c, hub) })
}

const foreignManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: other-controller, namespace: antrea-multicluster}
spec:
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec: {containers: [{name: c, image: other}], serviceAccountName: other}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: other, namespace: antrea-multicluster}
`

func deployFile(t *testing.T, c client.Client, hub *lab.Cluster) {
	before := inventory(t, c)
	path := write(t, "leader.yaml", []byte(foreignManifest))
	out := run(t, hub, "deploy", "leadercluster", "-n", "elsewhere", "-f", path)
	same(t, []string{"namespace/elsewhere created", "serviceaccount/other created", "deployment.apps/other-controller created"},
		strings.Split(strings.TrimSpace(out), "\n"))
	get(t, c, "elsewhere", "other", &corev1.ServiceAccount{})
	all(t, "unchanged", outcomesOf(t, run(t, hub, "deploy", "leadercluster", "-n", "elsewhere", "-f", path, "-o", "json")))
	run(t, hub, "undeploy", "leadercluster", "-n", "elsewhere", "-f", path)
	settles(t, c, before)

	t.Run("what says of no Namespace goes where it was asked for", func(t *testing.T) {
		path := write(t, "bare.yaml", []byte(strings.ReplaceAll(foreignManifest, ", namespace: antrea-multicluster", "")))
		all(t, "created", outcomesOf(t, run(t, hub, "deploy", "leadercluster", "-n", "elsewhere", "-f", path, "--wait", "0", "-o", "json")))
		get(t, c, "elsewhere", "other", &corev1.ServiceAccount{})
		run(t, hub, "undeploy", "leadercluster", "-n", "elsewhere", "-f", path)
		settles(t, c, before)
	})
	for name, bad := range map[string]struct{ add, words string }{
		"a Namespace that nobody has": {"---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: far, namespace: far-away}}\n", `Namespace "far-away", which is neither in the file nor in this cluster`},
		"a kind that nobody knows":    {"---\n{apiVersion: example.com/v1, kind: Odd, metadata: {name: odd}}\n", `Odd "odd"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := command(t, hub, "deploy", "leadercluster", "-n", "elsewhere", "-f", write(t, "bad.yaml", []byte(foreignManifest+bad.add)))
			if err == nil || !strings.Contains(err.Error(), bad.words) {
				t.Errorf("%v", err)
			}
			settles(t, c, before) // nothing was begun
		})
	}
	for name, bad := range map[string]struct{ text, words string }{
		"empty": {"", "no object"},
		"HTML":  {"<html>404</html>", "document 1"},
	} {
		_, _, err := command(t, hub, "deploy", "leadercluster", "-n", "elsewhere", "-f", write(t, name, []byte(bad.text)))
		wantError(t, err, exit.Usage, bad.words)
	}
	settles(t, c, before)
}
