package lab_test

import (
	"context"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
)

// patience bounds every wait for something that will happen.
const patience = time.Minute

// shared is for tests that leave the clusters as they found them, but for
// namespaces.
var shared = labtest.Shared(labtest.Options{
	Clusters: []string{"leader", "east"},
	Images:   map[string][]string{sleeper: {"/bin/sleep", "600"}},
})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func clientOf(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// leader returns a cluster of the shared lab and its client.
func leader(t *testing.T) (*lab.Cluster, *kubernetes.Clientset) {
	t.Helper()
	c := labtest.Cluster(t, shared.Lab(t), "leader")
	return c, clientOf(t, c.RESTConfig())
}

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// must ends the test at an error of a step.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually looks until the look returns nil.
func eventually(t *testing.T, look func(context.Context) error) {
	t.Helper()
	ctx := patient(t)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := look(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still wrong after %s: %v", patience, err)
		case <-tick.C:
		}
	}
}

func createNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

func namespaceExists(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	return err
}

func TestClustersAnswerByTheirContextsAndAreApart(t *testing.T) {
	l := shared.Lab(t)
	for _, name := range l.ClusterNames() {
		client := clientOf(t, labtest.Cluster(t, l, name).RESTConfig())
		must(t, createNamespace(t.Context(), client, "only-"+name))
	}
	_, client := leader(t)
	if err := namespaceExists(t.Context(), client, "only-east"); err == nil {
		t.Error("the leader shows a namespace of east")
	}
}

func TestServerVersionIsThatOfARelease(t *testing.T) {
	_, client := leader(t)
	version, err := client.Discovery().ServerVersion()
	must(t, err)
	if version.Major != "1" || version.GitVersion == "v0.0.0-master+$Format:%H$" {
		t.Errorf("the API server calls itself %s", version)
	}
}

func TestNobodyIsLetInWithoutCredentials(t *testing.T) {
	c, _ := leader(t)
	config := rest.AnonymousClientConfig(c.RESTConfig())
	_, err := clientOf(t, config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err == nil {
		t.Error("an anonymous client listed namespaces")
	}
}

func TestNamesOfClustersAreChecked(t *testing.T) {
	for name, names := range map[string][]string{
		"none":    nil,
		"twice":   {"east", "east"},
		"no name": {"East_1"},
		"many":    make([]string, 16),
	} {
		if _, err := lab.Start(t.Context(), lab.Options{Dir: t.TempDir(), Clusters: names}, nil); err == nil {
			t.Errorf("%s: %q was accepted", name, names)
		}
	}
}
