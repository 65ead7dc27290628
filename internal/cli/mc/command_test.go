package mc

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/joinfile"
)

func TestWrongUse(t *testing.T) {
	for name, bad := range map[string]struct {
		args  []string
		words []string
	}{
		"init without anything":           {[]string{"init"}, []string{"--namespace, --clusterset, --clusterid are missing"}},
		"init with an argument":           {[]string{"init", "fleet"}, []string{`"fleet"`}},
		"init with the flag that is gone": {[]string{"init", "-n", "common", "--create-token"}, []string{"--create-token is gone", "lockstep mc create membertoken NAME --cluster-id ID -n common"}},
		"a token without a name":          {[]string{"create", "membertoken", "-n", "common", "--cluster-id", "east"}, []string{"NAME"}},
		"a token without an ID":           {[]string{"create", "membertoken", "east", "-n", "common"}, []string{"--cluster-id is missing"}},
		"two tokens":                      {[]string{"create", "membertoken", "east", "west"}, []string{"not 2"}},
		"leave without a name":            {[]string{"leave"}, []string{"--clusterset is missing"}},
		"destroy without a Namespace":     {[]string{"destroy", "--clusterset", "fleet"}, []string{"--namespace is missing"}},
		"accept without a name":           {[]string{"accept-leader"}, []string{"--clusterset is missing"}},
		"status in an unknown format":     {[]string{"status", "-o", "html"}, []string{"html", "json, yaml, wide"}},
		"a join config that is none":      {[]string{"join", "-f", "/nowhere"}, []string{"/nowhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := command(t, nil, bad.args...)
			wantError(t, err, exit.Usage, bad.words...)
			if out != "" {
				t.Errorf("stdout has %q", out)
			}
		})
	}
}

func TestUnusableKubeconfigs(t *testing.T) {
	_, _, err := command(t, nil, "status", "--kubeconfig", "/nowhere/config")
	wantError(t, err, exit.Failed, "/nowhere/config")
	path := write(t, "config", []byte("apiVersion: v1\nkind: Config\n"))
	_, _, err = command(t, nil, "get", "clusterset", "--kubeconfig", path)
	wantError(t, err, exit.Failed, "--kubeconfig")
	_, _, err = command(t, nil, "get", "clusterset", "--kubeconfig", path, "--context", "missing")
	wantError(t, err, exit.Failed, "missing", "get-contexts")
}

// TestTheWayToAMembership is the sequence of the help text, as it is typed.
func TestTheWayToAMembership(t *testing.T) {
	c, hub := cluster(t)
	ns, dir := namespace(t, c, "area"), t.TempDir()
	join, token := filepath.Join(dir, "join.yaml"), filepath.Join(dir, "east.yaml")
	member := eastJoins(t, c)
	for _, step := range []struct {
		args []string
		out  string
	}{
		{[]string{"init", "-n", ns, "--clusterset", "fleet", "--clusterid", "hub", "-j", join, "--leader-apiserver", "https://hub.example", "--wait", "0"}, "clusterset/fleet created\n"},
		{[]string{"create", "membertoken", "east-token", "-n", ns, "--cluster-id", "east", "-o", token}, "serviceaccount/east-token created\nrolebinding/east-token created\nsecret/east-token created\n"},
		{[]string{"join", "-f", join, "--clusterid", "east", "-n", member.Namespace, "--token-secret-file", token, "--wait", "0"}, "secret/east-token created\nclusterset/fleet created\n"},
		{[]string{"leave", "--clusterset", "fleet", "-n", member.Namespace}, "clusterset/fleet deleted\nsecret/east-token deleted\n"},
		{[]string{"delete", "membertoken", "east-token", "-n", ns}, "secret/east-token deleted\nrolebinding/east-token deleted\nserviceaccount/east-token deleted\n"},
		{[]string{"destroy", "-n", ns, "--clusterset", "fleet"}, "clusterset/fleet deleted\n"},
	} {
		out, errOut, err := command(t, hub, step.args...)
		if err != nil {
			t.Fatalf("%v: %v", step.args, err)
		}
		same(t, step.out, out)
		if strings.Contains(out+errOut, "eyJ") {
			t.Errorf("%v printed a token", step.args)
		}
	}
	for path, mode := range map[string]fs.FileMode{token: 0o600, join: 0o644} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s is %v, %v, want %v", path, info.Mode(), err, mode)
		}
	}
}

// A join config and its token come by a pipe as well as by files, and keys that mean
// nothing here are told, and do not stop it.
func TestJoinReadsStdin(t *testing.T) {
	c, hub := cluster(t)
	member := eastJoins(t, c)
	config := joinfile.Config{ClusterSetID: "fleet", LeaderClusterID: "hub", LeaderNamespace: "common", LeaderAPIServer: "https://hub.example"}
	text := append(config.Render(), "clusterId: orient\nrelay: https://relay.example\n"...)
	text = append(text, manifest(t, "piped-token")...)
	args := []string{"join", "-f", "-", "-n", member.Namespace, "--wait", "0"}

	_, errOut, err := fed(t, hub, text, args...) // a key that was mistyped is one that is missing
	wantError(t, err, exit.Usage, "--clusterid")
	if !strings.Contains(errOut, `warning: ignored in join config "-": unknown key "clusterId"; did you mean "clusterID"?`) {
		t.Errorf("what was ignored is not told:\n%s", errOut)
	}
	out, errOut, err := fed(t, hub, text, append(args, "--clusterid", "east")...)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "secret/piped-token created\nclusterset/fleet created\n", out)
	if !strings.Contains(errOut, `unknown key "relay"`) {
		t.Errorf("what was ignored is not told:\n%s", errOut)
	}
	var set v1alpha2.ClusterSet
	get(t, c, member.Namespace, "fleet", &set)
	same(t, "east", set.Spec.ClusterID)
	get(t, c, member.Namespace, "piped-token", &corev1.Secret{})
}

// A leader on this machine itself is nobody's leader elsewhere, unless somebody says
// that it is.
func TestJoinToALoopbackAddress(t *testing.T) {
	c, hub := cluster(t)
	member := eastJoins(t, c)
	args := []string{"join", "--clusterset", "fleet", "--clusterid", "east", "--leader-clusterid", "hub", "--leader-namespace", "common",
		"--leader-apiserver", "https://127.0.0.1:1", "--token-secret-file", write(t, "token.yaml", manifest(t, "east-token")), "-n", member.Namespace, "--wait", "0"}
	_, _, err := command(t, hub, args...)
	wantError(t, err, exit.Refused, "WK-55", "loopback")
	hasSet(t, c, member.Namespace, false)
	if _, _, err := command(t, hub, append(args, "--allow-loopback")...); err != nil {
		t.Fatal(err)
	}
	hasSet(t, c, member.Namespace, true)
}

// An importer that is no context is found before anything is written.
func TestImportersAreContexts(t *testing.T) {
	c, hub := cluster(t)
	ns := in(aService(t, c))
	for _, verb := range []string{"export", "unexport"} {
		out, _, err := command(t, hub, verb, "cart", "-n", ns, "--wait", "0", "--importers", "hubb")
		wantError(t, err, exit.Usage, `"hubb"`, `did you mean "hub"?`)
		same(t, "", out)
	}
	hasExport(t, c, ns, false)
}

// The kubeconfig is the one that was named, by either of the names of its flag.
func TestKubeconfigIsNamed(t *testing.T) {
	c, hub := cluster(t)
	ns := leads(t, c)
	t.Setenv("KUBECONFIG", "/nowhere/config")
	for _, flag := range []string{"-k", "--kubeconfig"} {
		out, _, err := command(t, nil, "get", "clusterset", "-n", ns, flag, hub.KubeconfigPath())
		if err != nil || !strings.Contains(out, "fleet") {
			t.Errorf("%s: %v\n%s", flag, err, out)
		}
		path := twoContexts(t, hub.KubeconfigPath())
		out, _, err = command(t, nil, "get", "clusterset", "-n", ns, flag, path, "--context", "hub")
		if err != nil || !strings.Contains(out, "fleet") {
			t.Errorf("%s with a context: %v\n%s", flag, err, out)
		}
		_, _, err = command(t, nil, "get", "clusterset", "-n", ns, flag, path, "--context", "nobody")
		wantError(t, err, exit.Failed, "127.0.0.1:1")
	}
	_, _, err := command(t, nil, "get", "clusterset", "-n", ns)
	wantError(t, err, exit.Failed, "/nowhere/config")
}

func TestFilesOnStdoutComeAlone(t *testing.T) {
	c, hub := cluster(t)
	ns := namespace(t, c, "area")
	out, _, err := command(t, hub, "init", "-n", ns, "--clusterset", "fleet", "--clusterid", "hub", "-j", "-", "--allow-loopback", "--wait", "0")
	if err != nil {
		t.Fatal(err)
	}
	if file, err := joinfile.Parse([]byte(out)); err != nil || file.Config.LeaderAPIServer != hub.RESTConfig().Host {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = command(t, hub, "create", "membertoken", "east-token", "-n", ns, "--cluster-id", "east", "-o", "-")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := joinfile.ParseToken([]byte(out)); err != nil {
		t.Error(err)
	}
	get(t, c, ns, "east-token", &corev1.Secret{})
}

func TestCompletion(t *testing.T) {
	c, hub := cluster(t)
	ns := leads(t, c)
	announced(t, c, ns, "east")
	create(t, c,
		service(ns, "cart"),
		&mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "exported"}},
		&v1alpha1.ResourceExport{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sent"}, Spec: v1alpha1.ResourceExportSpec{Kind: "Service"}},
		&v1alpha1.ResourceImport{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "received"}, Spec: v1alpha1.ResourceImportSpec{Kind: "ServiceImport"}},
	)
	for line, want := range map[string]string{
		"leave --clusterset":                          "fleet",
		"leave --namespace":                           ns,
		"leave --context":                             "hub",
		"status --contexts":                           "hub",
		"export --importers":                          "hub",
		"rotate-token --member-context":               "hub",
		"get resourceexport --cluster-id":             "east",
		"get joinconfig -n " + ns + " --member-token": "east-token",
		"get clusterset -o":                           "yaml",
		"leave --output":                              "json",
		"delete membertoken -n " + ns:                 "east-token",
		"get membertoken -n " + ns:                    "east-token",
		"rotate-token -n " + ns:                       "east-token",
		"rename":                                      "east",
		"rename --contexts hub":                       "east",
		"rename east --to west --unseen":              "east",
		"export -n " + ns:                             "cart",
		"unexport -n " + ns:                           "exported",
		"get clusterset -n " + ns:                     "fleet",
		"get resourceexport -n " + ns:                 "sent",
		"get resourceimport -n " + ns:                 "received",
	} {
		t.Run(line, func(t *testing.T) {
			words := append([]string{"__complete"}, strings.Fields(line)...)
			t.Setenv("KUBECONFIG", hub.KubeconfigPath())
			out, _, err := command(t, nil, append(words, "")...)
			if err != nil || !slices.Contains(strings.Split(out, "\n"), want) || strings.Contains(out, "ShellCompDirectiveDefault\n") {
				t.Errorf("offers %q, want %q; %v", out, want, err)
			}
		})
	}
	out, _, err := command(t, hub, "__complete", "create", "membertoken", "")
	if err != nil || strings.Contains(out, "east-token") {
		t.Errorf("a new token is offered the names of old ones: %q, %v", out, err)
	}
}
