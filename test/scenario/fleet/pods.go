package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/install"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab"
)

// Binary builds the program once per test process, for labs that run it in Pods.
var Binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "lockstep-bin-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "lockstep")
	build := exec.Command("go", "build", "-o", path, "github.com/lockstep-dev/lockstep/cmd/lockstep")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build cmd/lockstep: %w\n%s", err, output)
	}
	return path, nil
})

// Deploy makes a ClusterSet whose controllers run as Pods, from the manifests as
// they are installed anywhere: two replicas per role, each role with the rights
// of its own ServiceAccount. The lab must play image "lockstep" with Binary.
func Deploy(t testing.TB, l *lab.Lab, name string, tune func(config.Role, *config.Options)) *Fleet {
	t.Helper()
	f := &Fleet{Name: name, Area: "antrea-multicluster", Lab: l}
	f.Leader = &Controller{Cluster: Open(t, l, "leader"), Namespace: f.Area, ID: "leader", fleet: f}
	f.Leader.deploy(t, config.Leader, tune)
	f.Leader.Make(t, &v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.Area},
		Spec: v1alpha2.ClusterSetSpec{
			ClusterID: "leader", Namespace: f.Area,
			Leaders: []v1alpha2.LeaderCluster{{ClusterID: "leader"}},
		},
	})
	return f
}

// DeployMember makes a cluster of the lab a member whose controllers run as Pods.
func (f *Fleet) DeployMember(t testing.TB, cluster string, tune func(config.Role, *config.Options)) *Controller {
	t.Helper()
	m := &Controller{Cluster: Open(t, f.Lab, cluster), Namespace: "kube-system", ID: cluster, fleet: f}
	m.deploy(t, config.Member, tune)
	m.Request(t)
	m.AwaitReady(t)
	return m
}

func (c *Controller) deploy(t testing.TB, role config.Role, tune func(config.Role, *config.Options)) {
	t.Helper()
	options := config.Options{Namespace: c.Namespace}
	if tune != nil {
		tune(role, &options)
	}
	objects, err := config.Render(role, options)
	if err != nil {
		t.Fatal(err)
	}
	watching, err := client.NewWithWatch(c.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.Apply(t.Context(), watching, objects, install.Options{AvailableWithin: 2 * time.Minute}); err != nil {
		t.Fatalf("install %s in %q: %v", role, c.Name, err)
	}
}

// Active is the Pod that holds the lease of a role in this Namespace.
func (c *Controller) Active(t testing.TB, role string) (string, error) {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "lockstep-" + role}, lease); err != nil {
		return "", err
	}
	pod, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	if pod == "" {
		return "", fmt.Errorf("no replica of the %s in %q is active", role, c.Name)
	}
	return pod, nil
}
