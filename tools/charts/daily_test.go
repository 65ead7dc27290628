package charts_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

var update = flag.Bool("update", false, "write what is printed into docs/daily.md where it says something else")

// The Services of the user's shop, by the cluster that runs them.
var shop = map[string][]string{
	"east": {"cart", "catalog", "checkout", "mail", "pay", "search", "stock"},
	"west": {"login", "news", "reviews"},
}

// Three clusters are made a ClusterSet with Helm, export ten Services, have one
// broken, are repaired, get a new token, lose a member, and are as before in the
// end: with the commands of docs/daily.md as they are written there, each of which
// prints what is written there.
//
// covers: CLI-5.1, CLI-5.2, CLI-5.3, CLI-5.4, CLI-5.5
func TestTheDayOfThePage(t *testing.T) {
	var program string
	step(t, "compile", func(t *testing.T) { program = compile(t) })
	l := labtest.Start(t, labtest.Options{
		Clusters: []string{"hub", "east", "west"},
		Images:   map[string][]string{"lockstep": {program}, "shop": {"/bin/sleep", "infinity"}},
		Env:      []string{"LOCKSTEP_ALLOW_LOOPBACK=true", "LOCKSTEP_INTERVAL_SCALE=0.2"},
	})
	d := openDesk(t, l, program)
	step(t, "open the shop", d.openShop)
	before := map[string][]string{}
	for _, name := range l.ClusterNames() {
		before[name] = everything(t, labtest.Cluster(t, l, name).RESTConfig())
	}

	p := readPage(t, filepath.Join(root, "docs", "daily.md"))
	printed := map[int][]string{}
	if *update {
		defer func() { p.rewrite(t, printed) }() // as far as the day went
	}
	heading := ""
	for i, c := range p.typed {
		if heading != c.heading {
			heading = c.heading
			t.Logf("%s %s", time.Now().Format(time.TimeOnly), heading)
			if heading == "Find the broken one" {
				d.must(t, "kubectl set selector service search app=serach -n shop --context east")
			}
		}
		if output, same := d.follows(t, p, c); !same {
			printed[i] = output
		}
	}
	before["hub"] = append(before["hub"], "namespaces /shop") // made by the user
	for name, was := range before {
		fleet.Eventually(t, "nothing is left in "+name, func() error {
			left := since(was, everything(t, labtest.Cluster(t, l, name).RESTConfig()))
			if diff := cmp.Diff([]string(nil), left); diff != "" {
				return fmt.Errorf("%s", diff)
			}
			return nil
		})
	}
}

// desk is where the administrator types: a folder with the charts, and the three
// programs on the PATH.
type desk struct {
	folder string
	env    []string
}

func openDesk(t *testing.T, l *lab.Lab, program string) desk {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	charts, err := filepath.Abs(filepath.Join(root, "charts"))
	if err != nil {
		t.Fatal(err)
	}
	folder, home := t.TempDir(), t.TempDir()
	bin := filepath.Join(home, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		filepath.Join(folder, "charts"): charts,
		filepath.Join(bin, "lockstep"):  program, filepath.Join(bin, "helm"): self, filepath.Join(bin, "kubectl"): self,
	} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	return desk{folder, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+home, "KUBECONFIG="+l.Kubeconfig())}
}

// types runs a line in a shell, and returns what a terminal would show.
func (d desk) types(t *testing.T, line string) (string, error) {
	var shown bytes.Buffer
	command := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", line)
	command.Dir, command.Env, command.Stdout, command.Stderr = d.folder, d.env, &shown, &shown
	err := command.Run()
	return shown.String(), err
}

func (d desk) must(t *testing.T, line string) {
	t.Helper()
	if shown, err := d.types(t, line); err != nil {
		t.Fatalf("$ %s\n%v\n%s", line, err, shown)
	}
}

// follows types a command of the page, and compares what it prints. Who only looks
// may look again: what others do takes its time.
func (d desk) follows(t *testing.T, p *page, c typed) (printed []string, same bool) {
	t.Helper()
	looks := strings.HasPrefix(c.command, "lockstep mc status ") || strings.HasPrefix(c.command, "kubectl get ") && !strings.Contains(c.command, "delete")
	patience := fleet.Deadline
	if *update {
		patience = 8 * time.Second // the page may be what is wrong
	}
	for begun := time.Now(); ; {
		shown, err := d.types(t, c.command)
		if err != nil {
			t.Fatalf("$ %s\n%v\n%s", c.command, err, shown)
		}
		if strings.Contains(shown, "eyJ") {
			t.Fatalf("$ %s\nprinted a token", c.command)
		}
		if shown = strings.TrimRight(shown, "\n"); shown != "" {
			printed = strings.Split(shown, "\n")
		} else {
			printed = nil
		}
		diff := differs(p.says(c), printed)
		switch {
		case diff == "":
			return printed, true
		case looks && time.Since(begun) < patience:
			continue
		case *update:
			return printed, false
		}
		t.Fatalf("$ %s\ndocs/daily.md says something else (-want +got); if it is not wrong, run this test with -update:\n%s", c.command, diff)
	}
}

// openShop runs the Services that are there in the morning.
func (d desk) openShop(t *testing.T) {
	for cluster, services := range shop {
		var manifest strings.Builder
		for _, name := range services {
			fmt.Fprintf(&manifest, `---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec:
  selector: {app: %[1]s}
  ports: [{name: http, port: 80}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: shop, image: shop}]
`, name)
		}
		file := filepath.Join(t.TempDir(), "shop.yaml")
		if err := os.WriteFile(file, []byte(manifest.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		d.must(t, "kubectl create namespace shop --context "+cluster)
		d.must(t, "kubectl apply -n shop -f "+file+" --context "+cluster)
		d.must(t, "kubectl wait deployment --all --for=condition=Available --timeout=2m -n shop --context "+cluster)
	}
}
