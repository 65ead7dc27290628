package selection_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

const (
	local    = selection.Local
	mirrored = selection.Mirrored
)

func TestSelfTest(t *testing.T) {
	for name, rules := range map[string]selection.Rules{
		"built in":       {},
		"another prefix": {Prefix: "/kubernetes.io/"},
		"other versions": {LocalDefinitions: true},
		"a listed sample": {SyncEqual: map[string]bool{"/registry/minions/node-1": true},
			IgnoreEqual: map[string]bool{"/registry/secrets/shop/password": true}},
	} {
		if _, err := rules.SelfTest(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClassify(t *testing.T) {
	rules := selection.Rules{
		IgnoreEqual: map[string]bool{"/registry/secrets/shop/mine": true, "/registry/secrets/shop/both": true, "/registry/cluster.x-k8s.io/machines/a/b": true},
		SyncEqual: map[string]bool{"/registry/secrets/shop/both": true, "/registry/secrets/cpaas-system/bundle": true,
			"/registry/leases/shop/x": true, "/registry/masterleases/192.0.2.1": true, "/registry/cluster.x-k8s.io/machines/a/global-1": true},
	}
	cases := map[string]struct {
		key, rule string
		class     selection.Class
		depends   bool
	}{
		"ignore wins over sync":                            {"/registry/secrets/shop/both", "ignore-equal", local, false},
		"ignore wins over machines":                        {"/registry/cluster.x-k8s.io/machines/a/b", "ignore-equal", local, false},
		"sync wins over a namespace":                       {"/registry/secrets/cpaas-system/bundle", "sync-equal", mirrored, false},
		"sync wins over a local row":                       {"/registry/leases/shop/x", "sync-equal", mirrored, false},
		"sync wins over the name of global":                {"/registry/cluster.x-k8s.io/machines/a/global-1", "sync-equal", mirrored, false},
		"nothing wins over a never row":                    {"/registry/masterleases/192.0.2.1", "endpoint-lease", local, false},
		"only whole keys are listed":                       {"/registry/secrets/shop/mine2", "otherwise", mirrored, true},
		"machines of the platform's namespace":             {"/registry/cluster.x-k8s.io/machines/cpaas-system/w1", "capi", mirrored, true},
		"a bootstrap config":                               {"/registry/bootstrap.cluster.x-k8s.io/kubeadmconfigs/cpaas-system/w1", "capi", mirrored, true},
		"a group that only ends alike":                     {"/registry/xcluster.x-k8s.io/machines/cpaas-system/w1", "namespace", local, true},
		"a Machine of the platform":                        {"/registry/platform.tkestack.io/machines/global-1", "global", local, false},
		"a name that only begins alike":                    {"/registry/cluster.x-k8s.io/clusters/a/globally", "capi", mirrored, true},
		"a Service":                                        {"/registry/services/specs/shop/web", "otherwise", mirrored, true},
		"the Service kubernetes":                           {"/registry/services/specs/default/kubernetes", "kubernetes-service", local, false},
		"a Service of the namespace default":               {"/registry/services/specs/default/web", "namespace", local, true},
		"a row with a namespace in the middle":             {"/registry/configmaps/shop/kube-root-ca.crt", "cluster-identity", local, false},
		"a row with a rest of a part":                      {"/registry/priorityclasses/system-node-critical", "bootstrap", local, false},
		"an object of that kind beside it":                 {"/registry/priorityclasses/shop", "otherwise", mirrored, true},
		"the root key that steers compaction":              {"compact_rev_key", "outside", local, false},
		"our own keys":                                     {"/lockstep/mirror/checkpoint", "outside", local, false},
		"a prefix that only begins alike":                  {"/registry2/secrets/shop/x", "outside", local, false},
		"the prefix itself":                                {"/registry/", "outside", local, false},
		"a part of a key":                                  {"/registry/masterleases", "otherwise", mirrored, true},
		"custom resources of the whole cluster":            {"/registry/example.com/things/kube-system", "otherwise", mirrored, true},
		"a custom kind called namespaces is no Namespace":  {"/registry/example.com/namespaces/kube-system", "otherwise", mirrored, true},
		"the Namespace object of a namespace of the rules": {"/registry/namespaces/operators", "namespace", local, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := rules.Classify(c.key)
			if got.Class != c.class || got.Rule != c.rule || got.DependsOnObject != c.depends || got.Why == "" {
				t.Errorf("got %+v\nwant %s by %s, depends on object: %t", got, c.class, c.rule, c.depends)
			}
		})
	}
}

func TestClassifyObject(t *testing.T) {
	cases := map[string]struct {
		key, rule string
		facts     selection.Facts
		class     selection.Class
	}{
		"a Machine with the label of global": {"/registry/cluster.x-k8s.io/machines/cpaas-system/w1", "global",
			selection.Facts{Read: true, Cluster: "global"}, local},
		"an agent's Secret with the scope global": {"/registry/secrets/shop/agent", "global",
			selection.Facts{Read: true, GlobalScope: true}, local},
		"a kubeconfig of a workload cluster in the platform's namespace": {"/registry/secrets/cpaas-system/west-kubeconfig", "cluster-object",
			selection.Facts{Read: true, Cluster: "west"}, mirrored},
		"a Deployment with such a label stays": {"/registry/deployments/cpaas-system/web", "namespace",
			selection.Facts{Read: true, Cluster: "west"}, local},
		"no label, no change": {"/registry/secrets/shop/x", "otherwise", selection.Facts{Read: true}, mirrored},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (selection.Rules{}).ClassifyObject(c.key, c.facts); got.Class != c.class || got.Rule != c.rule || got.DependsOnObject {
				t.Errorf("got %+v, want %s by %s", got, c.class, c.rule)
			}
		})
	}
}

func TestParseLists(t *testing.T) {
	got, err := selection.Rules{}.ParseLists(map[string]string{
		"ignore-equal.txt":        "# ours\n\n/registry/secrets/a/x\r\n  /registry/secrets/a/both  \n",
		"sync-equal-file.txt":     "/registry/secrets/b/y\n/registry/secrets/a/both",
		"additional_ignore_equal": "- \"/registry/secrets/c/z\"\n- /registry/secrets/c/zz\n",
		"ignore-equals.txt":       "/registry/secrets/a/typo",
		"something":               "else",
	}, []string{"/registry/secrets/d/w"})
	if err != nil {
		t.Fatal(err)
	}
	want := selection.Lists{
		IgnoreEqual: map[string]bool{"/registry/secrets/a/x": true, "/registry/secrets/a/both": true, "/registry/secrets/c/z": true, "/registry/secrets/c/zz": true, "/registry/secrets/d/w": true},
		SyncEqual:   map[string]bool{"/registry/secrets/b/y": true, "/registry/secrets/a/both": true},
		Opaque:      []string{"ignore-equals.txt", "something"},
		Notices: []string{
			`the entry "ignore-equals.txt" has no known meaning and changes nothing; did you mean "ignore-equal.txt"?`,
			`/registry/secrets/a/both is in both lists and stays local`,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseListsTellsEachLine(t *testing.T) {
	_, err := selection.Rules{}.ParseLists(map[string]string{
		"ignore-equal.txt":    "registry/a\n/registry/secrets/a/\n/registry/secrets/*\n/registry/a/b /registry/a/c",
		"sync-equal-file.txt": "\ncompact_rev_key\n/compact_rev_key\n/registry/masterleases/192.0.2.1",
	}, nil)
	var got []string
	for _, line := range strings.Split(err.Error(), "\n") {
		got = append(got, line[:strings.Index(line, ";")])
	}
	want := []string{
		`cannot use line 1 of ignore-equal.txt, "registry/a": a key begins with a slash`,
		`cannot use line 2 of ignore-equal.txt, "/registry/secrets/a/": it is a range, and lists hold exact keys`,
		`cannot use line 3 of ignore-equal.txt, "/registry/secrets/*": lists hold exact keys, no patterns`,
		`cannot use line 4 of ignore-equal.txt, "/registry/a/b /registry/a/c": a key has no spaces, commas or semicolons`,
		`cannot use line 2 of sync-equal-file.txt, "compact_rev_key": a key begins with a slash`,
		`cannot use line 3 of sync-equal-file.txt, "/compact_rev_key": it is not below /registry/`,
		`cannot use line 4 of sync-equal-file.txt, "/registry/masterleases/192.0.2.1": it is never mirrored: the lease is lost on the way, so the primary's API server would stay in the standby's Service kubernetes for ever`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	line := new(selection.LineError)
	if !errors.As(err, &line) || line.Next == "" {
		t.Errorf("the error holds no line: %v", err)
	}
}

func TestDigest(t *testing.T) {
	base := selection.Rules{}.Digest()
	if (selection.Rules{Prefix: "/registry"}).Digest() != base {
		t.Error("the default prefix, spelled out, is another set of rules")
	}
	for name, rules := range map[string]selection.Rules{
		"prefix":      {Prefix: "/other"},
		"definitions": {LocalDefinitions: true},
		"ignore":      {IgnoreEqual: map[string]bool{"/registry/a/b": true}},
		"sync":        {SyncEqual: map[string]bool{"/registry/a/b": true}},
	} {
		if rules.Digest() == base {
			t.Errorf("%s changes classes, and the digest is the same", name)
		}
	}
}
