package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// verb is how one command of mc is called rightly: its arguments, and the flags
// it cannot do without.
type verb struct {
	args  []string
	needs []string // "--flag=value"
}

var verbs = map[string]verb{
	"accept-leader":          {nil, []string{"--clusterset=fleet"}},
	"create membertoken":     {[]string{"east-token"}, []string{"--namespace=area", "--cluster-id=east"}},
	"delete membertoken":     {[]string{"east-token"}, []string{"--namespace=area"}},
	"deploy leadercluster":   {nil, []string{"--namespace=area"}},
	"deploy membercluster":   {nil, []string{"--namespace=area"}},
	"destroy":                {nil, []string{"--namespace=area", "--clusterset=fleet"}},
	"export":                 {[]string{"cart"}, []string{"--namespace=shop"}},
	"get clusterset":         {},
	"get joinconfig":         {nil, []string{"--namespace=area"}},
	"get membertoken":        {},
	"get resourceexport":     {},
	"get resourceimport":     {},
	"init":                   {nil, []string{"--namespace=area", "--clusterset=fleet", "--clusterid=hub"}},
	"leave":                  {nil, []string{"--clusterset=fleet"}},
	"migrate-legacy":         {},
	"preflight":              {},
	"rename":                 {[]string{"east-1"}, []string{"--to=east1"}},
	"rotate-token":           {[]string{"east-token"}, []string{"--namespace=area", "--member-context=hub"}},
	"status":                 {},
	"undeploy leadercluster": {nil, []string{"--namespace=area"}},
	"undeploy membercluster": {nil, []string{"--namespace=area"}},
	"unexport":               {[]string{"cart"}, []string{"--namespace=shop"}},
	"join": {nil, []string{"--clusterset=fleet", "--clusterid=east", "--leader-clusterid=hub", "--leader-namespace=area",
		"--leader-apiserver=https://hub.example", "--token-secret-name=east-token"}},
}

func (v verb) line(name string, without string, more ...string) []string {
	line := append([]string{"mc"}, strings.Fields(name)...)
	line = append(line, v.args...)
	for _, need := range v.needs {
		if need != without {
			line = append(line, need)
		}
	}
	return append(line, more...)
}

// leaves are the commands of mc that do something, by the words that call them.
func leaves() map[string]*cobra.Command {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	found := map[string]*cobra.Command{}
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		if !command.HasSubCommands() {
			if words, ok := strings.CutPrefix(command.CommandPath(), "lockstep mc "); ok {
				found[words] = command
			}
		}
		for _, child := range command.Commands() {
			visit(child)
		}
	}
	visit(newRoot(streams))
	return found
}

func TestEveryVerbIsCalledHere(t *testing.T) {
	found := leaves()
	for name := range found {
		if _, ok := verbs[name]; !ok {
			t.Errorf("mc %s is not in the table of these tests", name)
		}
	}
	for name := range verbs {
		if found[name] == nil {
			t.Errorf("there is no mc %s", name)
		}
	}
}

// mustFail checks that a call ends with a code and a message that names what is
// wrong, and that the same comes as JSON when JSON is asked for.
func mustFail(t *testing.T, code int, word string, line []string) {
	t.Helper()
	got := typed(t, nil, line...)
	if got.code != code || !strings.HasPrefix(got.errOut, "error: ") || !strings.Contains(got.errOut, word) || got.out != "" {
		t.Errorf("%q: exit code %d, want %d and %q\nstdout %q\nstderr %q", line, got.code, code, word, got.out, got.errOut)
	}
	line = append(slices.Clone(line), "--output=json")
	got = typed(t, nil, line...)
	var printed struct{ Error exit.Report }
	if err := json.Unmarshal([]byte(got.errOut), &printed); err != nil {
		t.Errorf("%q: %v: %q", line, err, got.errOut)
	} else if printed.Error.What == "" || printed.Error.Code != got.code {
		t.Errorf("%q: exit code %d, %+v", line, got.code, printed.Error)
	}
}

func TestEveryVerbRefusesWrongUse(t *testing.T) {
	for name, command := range leaves() {
		v := verbs[name]
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none")) // nothing here gets as far as a cluster
			mustFail(t, exit.Usage, "--no-such-flag", v.line(name, "", "--no-such-flag"))
			mustFail(t, exit.Usage, "surplus", v.line(name, "", "surplus", "surplus"))
			for _, removed := range []string{"server", "timeout", "verbose"} { // of antctl: docs/cli.md says why
				if command.Flags().Lookup(removed) == nil {
					mustFail(t, exit.Usage, "--"+removed, v.line(name, "", "--"+removed+"=1s"))
				}
			}
			if len(v.args) > 0 {
				mustFail(t, exit.Usage, "NAME", verb{nil, v.needs}.line(name, ""))
				mustFail(t, exit.Usage, "NAME", verb{[]string{""}, v.needs}.line(name, ""))
			}
			for _, need := range v.needs {
				flag, _, _ := strings.Cut(need, "=")
				mustFail(t, exit.Usage, flag, v.line(name, need))
				mustFail(t, exit.Usage, flag, v.line(name, need, flag+"="))
			}
			command.Flags().VisitAll(func(flag *pflag.Flag) {
				for _, value := range cannotBe(flag) {
					mustFail(t, exit.Usage, "--"+flag.Name, v.line(name, "", "--"+flag.Name+"="+value))
				}
			})
			if flag := command.Flags().Lookup("output"); flag != nil {
				got := typed(t, nil, v.line(name, "", "--output=xml")...)
				if got.code != exit.Usage || !strings.Contains(got.errOut, `"xml"`) || !strings.Contains(got.errOut, "json") {
					t.Errorf("exit code %d: %s", got.code, got.errOut)
				}
			}
		})
	}
}

func TestContradictions(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, line := range []string{
		"mc get resourceexport x -A | -A",
		"mc get resourceimport x --all-namespaces | -A",
		"mc get clusterset --namespace= | -n",
		"mc status --contexts a,b --all-contexts | exclude",
		"mc deploy leadercluster -n a -f /dev/null --image x | exclude",
		"mc deploy leadercluster -n a --antrea-version 2.7.0 | --manifest-file",
		"mc deploy membercluster -n UPPER | UPPER",
		"mc deploy membercluster -n a -f /nowhere | /nowhere",
		"mc undeploy membercluster -n a -f /nowhere | /nowhere",
		"mc rotate-token t -n a | --member-context",
		"mc rotate-token t -n a --member-context east -o f | exclude",
		"mc export pod/cart -n shop | pod/cart",
		"mc export svc/ -n shop | svc/",
		"mc init -n a --create-token | mc create membertoken",
		"mc join -f /nowhere | /nowhere",
		"mc migrate-legacy --dry-run --yes | exclude",
		"mc rename east --to east | called that already",
		"mc preflight --antctl-version nonsense | --antctl-version",
	} {
		args, word, _ := strings.Cut(line, " | ")
		t.Run(args, func(t *testing.T) { mustFail(t, exit.Usage, word, strings.Fields(args)) })
	}
}

// A join without anything tells all that is missing, to programs too.
func TestAllThatIsMissingIsTold(t *testing.T) {
	got := typed(t, nil, "mc", "join", "-o", "json")
	var printed struct{ Error exit.Report }
	if err := json.Unmarshal([]byte(got.errOut), &printed); err != nil {
		t.Fatal(err)
	}
	if len(printed.Error.Also) != 5 || got.code != exit.Usage {
		t.Errorf("exit code %d, %d further ones: %s", got.code, len(printed.Error.Also), got.errOut)
	}
	got = typed(t, nil, "mc", "join", "--clusterset=UP", "--clusterid=a.b", "--leader-clusterid=hub", "--leader-namespace=a",
		"--leader-apiserver=http://x", "--token-secret-name=t", "-o", "json")
	if err := json.Unmarshal([]byte(got.errOut), &printed); err != nil {
		t.Fatal(err)
	}
	if len(printed.Error.Also) != 2 || printed.Error.Also[0].Rule != "UPG-CHK-18" || got.code != exit.Refused {
		t.Errorf("exit code %d: %s", got.code, got.errOut)
	}
}

const oneContext = `{apiVersion: v1, kind: Config, current-context: hub, contexts: [{name: hub, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]}`

func TestEveryVerbSaysWhatIsWrongWithTheKubeconfig(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, bad := range map[string]struct {
		flags []string
		words string
	}{
		"missing":           {[]string{"--kubeconfig=/nowhere/config"}, "/nowhere/config"},
		"unreadable":        {[]string{"--kubeconfig=" + dir}, dir},
		"no YAML":           {[]string{"--kubeconfig=" + file("bad", "a: b: c")}, "the kubeconfig"},
		"no such context":   {[]string{"--kubeconfig=" + file("one", oneContext), "--context=hubb"}, `did you mean "hub"?`},
		"like no context":   {[]string{"--kubeconfig=" + file("two", oneContext), "--context=xyzzy"}, "its contexts are hub"},
		"nobody listens":    {[]string{"--kubeconfig=" + file("three", oneContext)}, "127.0.0.1:1"},
		"no server to find": {[]string{"--kubeconfig=" + file("four", strings.Replace(oneContext, "https://127.0.0.1:1", "", 1))}, "the kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			for verb, v := range verbs {
				switch {
				case (verb == "status" || verb == "preflight" || verb == "rename") && strings.Contains(bad.flags[0], "config="+dir+"/"):
					continue // they read several contexts, and say which one cannot be used
				case verb == "get joinconfig" && name == "nobody listens":
					continue // refused before, for members could not reach that address
				}
				mustFail(t, exit.Failed, bad.words, v.line(verb, "", bad.flags...))
			}
		})
	}
}
