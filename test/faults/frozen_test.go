package faults_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/proc"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// A leader's process is frozen for longer than its lease lasts, and another one
// takes over. When the first goes on, it has everything to do that it missed,
// and it writes nothing: the API server, which is asked, sees no write of it
// after the lease has passed on.
func TestFrozenLeaderWritesNothingMore(t *testing.T) {
	a := begin(t)
	there, here := prepare(t, a.east, a.west, a.hub), prepare(t, a.west, a.east, a.hub)
	a.Leader.Stop(t)
	t.Cleanup(func() { a.Leader.Start(standing.Life()) })
	record := admit(t, a)
	one, two := startReplica(t, a, "one"), startReplica(t, a, "two")
	replicas := map[string]*proc.Process{"one": one, "two": two}
	frozen := awaitHolder(t, a, "")
	there.make(t)
	there.arrived(t, a.west, a.hub)

	must(t, replicas[frozen].Pause())
	here.make(t)
	heir := awaitHolder(t, a, frozen)
	here.arrived(t, a.east, a.hub)
	passedOn := record.length()
	// More to catch up with, so that the one who wakes finds work at once.
	a.west.Unexport(t, namespace, here.fresh)
	a.hub.AwaitNoImport(t, namespace, here.fresh)

	must(t, replicas[frozen].Resume())
	select {
	case <-replicas[frozen].Done():
	case <-time.After(fleet.Deadline):
		t.Errorf("replica %s has lost its lease and goes on", frozen)
	}
	for _, w := range record.since(passedOn) {
		if w.by != heir && w.resource != "leases" {
			t.Errorf("after the lease had passed on to %s, %s", heir, w)
		}
	}
	t.Logf("%d writes of the replicas, %d since %s took over", record.length(), record.length()-passedOn, heir)
	for _, m := range a.members() {
		a.counted(t, m.ID, "True")
	}
}

// startReplica runs the leader as a process, in the place of the fleet's. The
// API server knows it by its name.
func startReplica(t *testing.T, a assembly, name string) *proc.Process {
	t.Helper()
	binary, err := fleet.Binary()
	must(t, err)
	dir := t.TempDir()
	config, kubeconfig := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "kubeconfig")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "apiVersion: %s\nkind: %s\nhealth:\n  healthProbeBindAddress: \"0\"\nwebhook:\n  port: %d\n",
		v1alpha1.GroupVersion, v1alpha1.KindMultiClusterConfig, freePort(t)), 0o600))
	admin, err := clientcmd.LoadFromFile(a.Leader.Lab.KubeconfigPath())
	must(t, err)
	for _, user := range admin.AuthInfos {
		actAs(user, a.Area, name)
	}
	must(t, clientcmd.WriteToFile(*admin, kubeconfig))
	process, err := proc.Start(proc.Command{
		Name: "leader-" + name, Path: binary,
		Args: []string{"run", "leader", "--config", config, "--kubeconfig", kubeconfig, "--namespace", a.Area},
		Env: []string{
			"POD_NAME=" + name, "POD_UID=of-" + name, "HOME=" + dir, "PATH=" + os.Getenv("PATH"),
			fmt.Sprintf("LOCKSTEP_INTERVAL_SCALE=%v", fleet.IntervalScale),
		},
		Dir: dir, Log: filepath.Join(a.Lab.Dir(), "leader-"+name+".log"),
	})
	must(t, err)
	t.Cleanup(func() { must(t, process.Kill()) })
	return process
}

// freePort is one that nobody listens at: replicas here share a machine, and each
// serves webhooks.
func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", ":0")
	must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// actAs makes a user of the administrator the controller's ServiceAccount, with
// a mark that tells replicas apart.
func actAs(user *clientcmdapi.AuthInfo, namespace, replica string) {
	user.Impersonate = "system:serviceaccount:" + namespace + ":" + v1alpha1.ControllerServiceAccount
	user.ImpersonateGroups = []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
	user.ImpersonateUserExtra = map[string][]string{replicaKey: {replica}}
}

// awaitHolder waits until a replica holds the lease that is not the former one.
func awaitHolder(t *testing.T, a assembly, former string) (holder string) {
	t.Helper()
	fleet.Eventually(t, "a replica other than "+former+" holds the lease", func() error {
		lease := &coordinationv1.Lease{}
		if err := a.Leader.Get(t.Context(), client.ObjectKey{Namespace: a.Area, Name: "lockstep-leader"}, lease); err != nil {
			return err
		}
		holder, _, _ = strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
		if holder == former || holder == "" {
			return fmt.Errorf("%q holds it", holder)
		}
		return nil
	})
	return holder
}
