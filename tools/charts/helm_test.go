package charts_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helmkube "helm.sh/helm/v4/pkg/kube"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/lockstep-dev/lockstep/internal/lab"
)

// patience bounds every wait of Helm.
const patience = 2 * time.Minute

// helmer runs Helm against one cluster of the lab, as its command line does.
type helmer struct {
	kubeconfig, cluster string
	cache               string // of what the API server serves
}

func newHelmer(t *testing.T, l *lab.Lab, cluster string) helmer {
	t.Helper()
	return helmer{l.Kubeconfig(), cluster, t.TempDir()}
}

func (h helmer) configuration(t *testing.T, namespace string) *action.Configuration {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Context, flags.CacheDir, flags.Namespace = &h.kubeconfig, &h.cluster, &h.cache, &namespace
	settings := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := settings.Init(flags, namespace, ""); err != nil {
		t.Fatal(err)
	}
	return settings
}

func load(t *testing.T, name string, changes ...func(*chart.Chart)) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir(folder(name))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(loaded)
	}
	return loaded
}

// install is helm install NAME charts/NAME -n NAMESPACE --create-namespace --wait.
func (h helmer) install(t *testing.T, name, namespace string, values map[string]any) {
	t.Helper()
	run := action.NewInstall(h.configuration(t, namespace))
	run.ReleaseName, run.Namespace, run.CreateNamespace = name, namespace, true
	run.WaitStrategy, run.Timeout = helmkube.StatusWatcherStrategy, patience
	if _, err := run.RunWithContext(t.Context(), load(t, name), values); err != nil {
		t.Fatalf("helm install %s -n %s: %v", name, namespace, err)
	}
}

// upgrade is helm upgrade NAME charts/NAME -n NAMESPACE --wait, with a chart that
// changed; with --force-conflicts where the objects have a second owner, because they
// were taken over.
func (h helmer) upgrade(t *testing.T, name, namespace string, values map[string]any, taken bool, changes ...func(*chart.Chart)) {
	t.Helper()
	run := action.NewUpgrade(h.configuration(t, namespace))
	run.ForceConflicts = taken
	run.Namespace, run.WaitStrategy, run.Timeout = namespace, helmkube.StatusWatcherStrategy, patience
	if _, err := run.RunWithContext(t.Context(), name, load(t, name, changes...), values); err != nil {
		t.Fatalf("helm upgrade %s -n %s: %v", name, namespace, err)
	}
}

// uninstall is helm uninstall NAME -n NAMESPACE --wait; it returns what Helm says
// it kept.
func (h helmer) uninstall(t *testing.T, name, namespace string) string {
	t.Helper()
	run := action.NewUninstall(h.configuration(t, namespace))
	run.WaitStrategy, run.Timeout = helmkube.StatusWatcherStrategy, patience
	answer, err := run.Run(name)
	if err != nil {
		t.Fatalf("helm uninstall %s -n %s: %v", name, namespace, err)
	}
	return answer.Info
}

// nextVersion is the chart of the release after this one.
func nextVersion(c *chart.Chart) { c.Metadata.Version, c.Metadata.AppVersion = "0.2.0", "next" }

// changedCRD is a chart whose kinds say something new.
func changedCRD(c *chart.Chart) {
	for _, file := range c.Templates {
		file.Data = []byte(strings.Replace(string(file.Data), "metadata:\n  annotations:\n", "metadata:\n  annotations:\n    example.com/release: next\n", 1))
	}
}
