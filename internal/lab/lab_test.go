package lab_test

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
)

// shared is for tests that leave the clusters as they found them.
var shared = labtest.Shared(labtest.Options{Clusters: []string{"leader", "east"}})

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func TestClustersAnswer(t *testing.T) {
	for _, name := range []string{"leader", "east"} {
		c := labtest.Cluster(t, shared.Lab(t), name)
		client, err := kubernetes.NewForConfig(c.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{}); err != nil {
			t.Errorf("cluster %q: %v", name, err)
		}
	}
}
