// Package journey_test types the whole way from two empty clusters to a shared
// Service and back, with the program as a plugin of kubectl and its controllers
// as Pods.
package journey_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

const area = "antrea-multicluster"

// traveller types commands.
type traveller struct {
	lab    *lab.Lab
	plugin string // the program, under the name kubectl looks for
}

func (j traveller) command(t *testing.T, line string) *exec.Cmd {
	command := exec.CommandContext(t.Context(), j.plugin, append([]string{"mc"}, strings.Fields(line)...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+j.lab.Kubeconfig())
	return command
}

// types runs one command and returns what it printed. Whatever it says, it says
// no token and speaks of itself as it was called.
func (j traveller) types(t *testing.T, line string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	command := j.command(t, line)
	command.Stdout, command.Stderr = &out, &errOut
	if err := command.Run(); err != nil {
		t.Fatalf("mc %s: %v\n%s%s", line, err, out.String(), errOut.String())
	}
	said := out.String() + errOut.String()
	if strings.Contains(said, "eyJ") {
		t.Errorf("mc %s printed a token", line)
	}
	if strings.Contains(strings.ReplaceAll(said, "kubectl lockstep mc", ""), "lockstep mc") {
		t.Errorf("mc %s speaks of another command than the one that was typed: %s", line, said)
	}
	return out.String()
}

// interrupted runs a command until it has said something, and sends it an
// interrupt.
func (j traveller) interrupted(t *testing.T, line, when string) (code int, said string) {
	t.Helper()
	command := j.command(t, line)
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(stderr)
	for !strings.Contains(said, when) {
		text, err := reader.ReadString('\n')
		said += text
		if err != nil {
			t.Fatalf("it never said %q: %s", when, said)
		}
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(reader)
	if err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := command.Wait(); !errors.As(err, &exit) {
		t.Fatalf("it ended with %v", err)
	}
	return exit.ExitCode(), said + string(rest)
}

// covers: CLI-5.1, CLI-5.2, CLI-5.4, CLI-5.5, WK-17
func TestTheWholeWay(t *testing.T) {
	binary, err := fleet.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	j := traveller{plugin: filepath.Join(dir, "kubectl-lockstep")}
	if err := os.Symlink(binary, j.plugin); err != nil {
		t.Fatal(err)
	}
	j.lab = labtest.Start(t, labtest.Options{
		Clusters: []string{"hub", "east"},
		Images:   map[string][]string{"lockstep": {binary}},
		Env:      []string{"LOCKSTEP_ALLOW_LOOPBACK=true", "LOCKSTEP_INTERVAL_SCALE=0.2"},
	})
	hub, east := fleet.Open(t, j.lab, "hub"), fleet.Open(t, j.lab, "east")

	j.types(t, "deploy leadercluster -n "+area+" --context hub")
	join := filepath.Join(dir, "join.yaml")
	j.types(t, "init -n "+area+" --clusterset fleet --clusterid hub -j "+join+" --allow-loopback --context hub")
	for context, id := range map[string]string{"east": "east", "hub": "north"} {
		token := filepath.Join(dir, id+".yaml")
		j.types(t, "deploy membercluster -n kube-system --context "+context)
		j.types(t, "create membertoken "+id+"-token -n "+area+" --cluster-id "+id+" -o "+token+" --context hub")
		j.types(t, "join -f "+join+" --clusterid "+id+" --token-secret-file "+token+" --allow-loopback --context "+context)
	}
	j.shares(t, hub, east)
	j.rotates(t, filepath.Join(dir, "new.yaml"))
	j.types(t, "status --contexts hub,east --exit-code")

	j.types(t, "leave --clusterset fleet --context east")
	j.types(t, "leave --clusterset fleet --context hub")
	j.types(t, "destroy -n "+area+" --clusterset fleet --context hub")
	for _, context := range []string{"east", "hub"} {
		j.types(t, "undeploy membercluster -n kube-system --context "+context)
	}
	j.types(t, "undeploy leadercluster -n "+area+" --context hub")
	for _, c := range []*fleet.Cluster{hub, east} {
		fleet.Eventually(t, "nothing is left in "+c.Name, func() error { return nothingLeft(t, c) })
	}
}

// shares exports a Service of east, sees it in hub, and takes it back.
func (j traveller) shares(t *testing.T, hub, east *fleet.Cluster) {
	t.Helper()
	ns := fleet.Namespace(t, "shop", hub, east)
	east.Service(t, ns, "cart", []corev1.ServicePort{fleet.HTTP}, "10.50.0.1")
	out := j.types(t, "export svc/cart -n "+ns+" --importers hub --context east")
	if !strings.Contains(out, "serviceimport/cart imported (hub: ") {
		t.Error(out)
	}
	imported, err := hub.Import(t, ns, "cart")
	if err != nil || !strings.Contains(out, imported.Service.Spec.ClusterIP) {
		t.Errorf("%v: %s", err, out)
	}
	out = j.types(t, "unexport cart -n "+ns+" --importers hub --context east")
	if !strings.Contains(out, "serviceimport/cart withdrawn (hub)") {
		t.Error(out)
	}
}

// rotates stops a rotation by an interrupt, and completes it another way.
func (j traveller) rotates(t *testing.T, file string) {
	t.Helper()
	code, said := j.interrupted(t, "rotate-token east-token -n "+area+" --context hub --wait 5m -o "+file, "waiting up to 5m0s")
	if code != 1 || !strings.Contains(said, "stopped while member token \"east-token\" was being rotated") ||
		!strings.Contains(said, "every old one is valid too") || !strings.Contains(said, "repeat the command") {
		t.Errorf("exit code %d: %s", code, said)
	}
	j.types(t, "status --contexts hub,east --exit-code")
	out := j.types(t, "rotate-token east-token -n "+area+" --context hub --member-context east")
	if !strings.Contains(out, " unchanged\nsecret/east-token configured (east)\nsecret/east-token deleted\n") {
		t.Error(out)
	}
}

// nothingLeft looks for kinds, Namespaces and Leases of ours.
func nothingLeft(t *testing.T, c *fleet.Cluster) error {
	var crds apiextensionsv1.CustomResourceDefinitionList
	if err := c.List(t.Context(), &crds); err != nil {
		return err
	}
	for _, crd := range crds.Items {
		if strings.HasPrefix(crd.Spec.Group, "multicluster.") {
			return errors.New(crd.Name)
		}
	}
	for _, object := range []client.Object{&corev1.Namespace{}, &coordinationv1.Lease{}} {
		key := client.ObjectKey{Name: area}
		if _, lease := object.(*coordinationv1.Lease); lease {
			key = client.ObjectKey{Namespace: "kube-system", Name: "lockstep-member"}
		}
		if err := c.Get(t.Context(), key, object); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New(key.String()))
		}
	}
	return nil
}
