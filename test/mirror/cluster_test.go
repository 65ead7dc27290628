package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/mirror/setting"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

// clusters are a primary and a standby with all that a control plane has, the
// garbage collector among it.
var clusters = labtest.Shared(labtest.Options{Clusters: []string{"primary", "standby"}})

func client(t *testing.T, c *lab.Cluster) *kubernetes.Clientset {
	t.Helper()
	config := c.RESTConfig()
	config.QPS, config.Burst = 1000, 2000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func sideOf(t *testing.T, c *lab.Cluster) setting.Side {
	t.Helper()
	etcd, err := c.EtcdClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	file := func(name string) string { return filepath.Join(c.Dir(), "pki", name) }
	return setting.Side{Endpoints: etcd.Endpoints(), CAFile: file("ca.crt"), CertFile: file("etcd-client.crt"), KeyFile: file("etcd-client.key")}
}

// labPair joins the two clusters of the lab.
func labPair(t *testing.T) (p *pair, primary, standby *lab.Cluster) {
	t.Helper()
	l := clusters.Lab(t)
	primary, standby = labtest.Cluster(t, l, "primary"), labtest.Cluster(t, l, "standby")
	from, err := primary.EtcdClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	to, err := standby.EtcdClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = from.Close(), to.Close() })
	return join(t, sideOf(t, primary), sideOf(t, standby), from, to), primary, standby
}

const (
	owners     = 200
	dependents = 2000
)

// family makes owners, and dependents whose keys are before those of their
// owners: in the order of keys, each would be without an owner at first.
func family(t *testing.T, client *kubernetes.Clientset, namespace string) {
	t.Helper()
	ctx := t.Context()
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	refs := make([]metav1.OwnerReference, owners)
	each(t, owners, func(ctx context.Context, i int) error {
		secret, err := client.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("owner%d", i)}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		refs[i] = metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID}
		return nil
	})
	each(t, dependents, func(ctx context.Context, i int) error {
		_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("dependent%d", i), OwnerReferences: []metav1.OwnerReference{refs[i%owners]},
		}}, metav1.CreateOptions{})
		return err
	})
}

func each(t *testing.T, n int, do func(context.Context, int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// identity are the keys of the standby that are its own.
func identity(t *testing.T, p *pair) map[string]string {
	t.Helper()
	own := map[string]string{}
	for key, value := range everything(t, p.to) {
		rest := strings.TrimPrefix(key, "/registry/")
		// What its own processes renew all the time is not compared.
		if (selection.Rules{}).Classify(key).Class == selection.Local && !strings.HasPrefix(rest, "leases/") &&
			!strings.HasPrefix(rest, "masterleases/") && !strings.HasPrefix(rest, "minions/") && !strings.HasPrefix(rest, "events/") && !strings.HasPrefix(rest, "peerserverleases/") {
			own[key] = string(value)
		}
	}
	return own
}

// Two fresh clusters, and the standby's garbage collector at work while it is
// filled: nothing is lost, and what makes the standby itself stays as it is.
//
// covers: D-12
func TestClusters(t *testing.T) {
	p, primary, standby := labPair(t)
	p.setting.Lease.Disabled = false
	p.setting.Lease.Namespace = "kube-system"
	from, to := client(t, primary), client(t, standby)
	family(t, from, "family")
	ours := identity(t, p)

	d := p.startIn("mirror-0", standby.KubeconfigPath())
	p.await("the standby has been copied", func() error {
		if status, body := d.get("/readyz"); status != 200 || d.metric("lockstep_mirror_copied_revision") == "" {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	count := func() error {
		list, err := to.CoreV1().ConfigMaps("family").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
		if err != nil {
			return err
		}
		if len(list.Items) != dependents {
			return fmt.Errorf("the standby has %d of %d dependents", len(list.Items), dependents)
		}
		for _, item := range list.Items {
			if item.DeletionTimestamp != nil {
				return fmt.Errorf("%s is being deleted", item.Name)
			}
		}
		return nil
	}
	p.await("the API server of the standby has all", count)

	// The garbage collector works: it has seen everything before this one.
	if _, err := to.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubevirt"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	doomed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "doomed", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Secret", Name: "never", UID: "00000000-0000-0000-0000-000000000000"},
	}}}
	if _, err := to.CoreV1().ConfigMaps("kubevirt").Create(t.Context(), doomed, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.await("the garbage collector of the standby works", func() error {
		list, err := to.CoreV1().ConfigMaps("kubevirt").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=doomed"})
		if err == nil && len(list.Items) > 0 {
			err = errors.New("it has not deleted an object without its owner")
		}
		return err
	})
	if err := count(); err != nil {
		t.Error(err)
	}
	for _, change := range []string{"put", "delete"} {
		if got := d.metric(fmt.Sprintf(`lockstep_mirror_foreign_writes_total{change=%q}`, change)); got != "" {
			t.Errorf("%s foreign writes of kind %s", got, change)
		}
	}

	// Identity, endpoints and compaction of the standby are its own.
	now := identity(t, p)
	maps.DeleteFunc(now, func(key, _ string) bool { _, before := ours[key]; return !before })
	for key, value := range ours {
		if now[key] != value {
			t.Errorf("%s of the standby has changed", key)
		}
	}
	for key := range everything(t, p.to) {
		if strings.HasPrefix(key, "/registry/masterleases/") && !strings.HasSuffix(key, "/"+standby.Address().String()) {
			t.Errorf("the standby would hand out the address of another API server: %s", key)
		}
	}
	for _, c := range []*lab.Cluster{primary, standby} {
		if err := c.WaitReady(t.Context()); err != nil {
			t.Errorf("%s is not healthy: %v", c.Name(), err)
		}
	}
	lease, err := to.CoordinationV1().Leases("kube-system").Get(t.Context(), "etcd-sync-mirror", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != "mirror-0" {
		t.Errorf("the Lease is %+v, %v", lease, err)
	}

	// What the primary changes through its API arrives, and its deletion of an
	// owner is finished by both garbage collectors.
	if err := from.CoreV1().Secrets("family").Delete(t.Context(), "owner7", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.await("both garbage collectors agree", func() error {
		a, err := from.CoreV1().ConfigMaps("family").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		b, err := to.CoreV1().ConfigMaps("family").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		if want := dependents - dependents/owners + 1; len(a.Items) != want || len(b.Items) != want {
			return fmt.Errorf("%d and %d ConfigMaps, want %d", len(a.Items), len(b.Items), want)
		}
		return nil
	})
}
