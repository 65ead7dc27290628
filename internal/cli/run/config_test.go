package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/plan/fabric"
)

const head = "apiVersion: multicluster.crd.antrea.io/v1alpha1\nkind: MultiClusterConfig\n"

// A bad file is refused before any cluster is asked, with everything that is
// wrong with it, and with the next step.
func TestBadConfigurationIsRefused(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none")) // whoever gets this far fails in another way
	for name, tc := range map[string]struct {
		reason string
		text   string
		says   []string
	}{
		"a key in other letters": {
			"upstream's decoder takes it in silence, ours would not read it",
			head + "endpointIpType: PodIP\n", []string{`unknown key "endpointIpType"; did you mean "endpointIPType"?`},
		},
		"a key below another": {
			"the nearest is looked for where the key stands",
			head + "health:\n  healthProbeBindAdress: :1\n", []string{`unknown key "health.healthProbeBindAdress"; did you mean "health.healthProbeBindAddress"?`},
		},
		"several mistakes":           {"one try shows all", head + "podCidrs: []\nserviceCidr: x\nendpointIPType: IP\n", []string{`"podCIDRs"`, `"serviceCIDR"`, `endpointIPType is "IP"`}},
		"another kind":               {"it may be any file", "apiVersion: v1\nkind: ConfigMap\n", []string{`it is apiVersion "v1", kind "ConfigMap", not "multicluster.crd.antrea.io/v1alpha1", "MultiClusterConfig"`}},
		"no kind":                    {"an empty file is one as well", "", []string{`it is apiVersion "", kind ""`}},
		"a CIDR that is an address":  {"a Service range needs its size", head + "serviceCIDR: 10.96.0.0\n", []string{`serviceCIDR holds "10.96.0.0", which is no CIDR such as 10.96.0.0/16`}},
		"a CIDR among others":        {"the bad one is named", head + "podCIDRs: [10.0.0.0/8, 10.0.0.0/33]\n", []string{`podCIDRs holds "10.0.0.0/33"`}},
		"an endpointIPType":          {"the choices are named", head + "endpointIPType: podip\n", []string{`endpointIPType is "podip", not one of ClusterIP, PodIP`}},
		"a gatewayIPPrecedence":      {"the choices are named", head + "gatewayIPPrecedence: outside\n", []string{`gatewayIPPrecedence is "outside", not one of private, internal, public, external`}},
		"not YAML":                   {"the place is named", head + "podCIDRs: [\n", []string{"it is not YAML", "line"}},
		"not YAML, but bytes":        {"a wrong file altogether", "\x7fELF\x00\x01", []string{"it is not YAML"}},
		"YAML of another shape":      {"a list is no configuration", "- a\n- b\n", []string{"it is a list, not keys with values"}},
		"a text":                     {"neither is a text", "endpointIPType\n", []string{"it is a text, not keys with values"}},
		"a value of another type":    {"the key and both types are named", head + "podCIDRs: 10.0.0.0/8\n", []string{"podCIDRs is a text, not a list"}},
		"a number where none fits":   {"nested keys have their path", head + "webhook:\n  port: high\n", []string{"webhook.port is a text, not a whole number"}},
		"half a port":                {"YAML knows fractions", head + "webhook:\n  port: 1.5\n", []string{"webhook.port is a number, not a whole number"}},
		"neither true nor false":     {"YAML 1.1 took more words for these", head + "enableStretchedNetworkPolicy: maybe\n", []string{"enableStretchedNetworkPolicy is a text, not true or false"}},
		"an item of another type":    {"it has its place", head + "podCIDRs: [10.0.0.0/8, {a: b}]\n", []string{"podCIDRs[1] is a map, not a text"}},
		"a text where a map stands":  {"a forgotten line", head + "health: :8080\n", []string{"health is a text, not a map"}},
		"a map where a value stands": {"the same for a map", head + "endpointIPType:\n  a: b\n", []string{"endpointIPType is a map, not a text"}},
		"a key that is there twice":  {"the last one would win in silence", head + "endpointIPType: PodIP\nendpointIPType: ClusterIP\n", []string{`"endpointIPType"`, "already set"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, role := range []string{"leader", "member"} {
				err := execute(role, "--config", path)
				if exit.Code(err) != exit.Refused {
					t.Fatalf("%s ends with %d: %v; %s", role, exit.Code(err), err, tc.reason)
				}
				for _, want := range append(tc.says, "cannot use configuration", path, "correct the file") {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %v\nwant %q: %s", role, err, want, tc.reason)
					}
				}
				for _, unwanted := range []string{"json:", "Go value", "Go struct", "interface {}", "\n"} {
					if strings.Contains(err.Error(), unwanted) {
						t.Errorf("%s: %q is no word for a user: %v", role, unwanted, err)
					}
				}
			}
		})
	}
}

func TestMissingConfigurationFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	err := execute("member", "--config", missing)
	if exit.Code(err) != exit.Failed || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "--config") {
		t.Errorf("ends with %d: %v", exit.Code(err), err)
	}
	if err := execute("member"); err == nil || !strings.Contains(err.Error(), `"config"`) {
		t.Errorf("without the flag: %v", err)
	}
	if err := execute(); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "lockstep run member") {
		t.Errorf("without a role: %v", err)
	}
}

func TestConfigurationDefaults(t *testing.T) {
	// Unquoted numbers are texts where texts are wanted, and no value is none.
	got, problems := parseConfig([]byte(head + "podCIDRs: ['', 10.0.0.0/8]\nmetrics:\n  bindAddress: 0\nhealth:\nwebhook:\n  port: 9443\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := &v1alpha1.MultiClusterConfig{
		Health: v1alpha1.HealthConfig{HealthProbeBindAddress: ":8080"}, Metrics: v1alpha1.MetricsConfig{BindAddress: "0"},
		GatewayIPPrecedence: "private", EndpointIPType: v1alpha1.EndpointIPTypeClusterIP, PodCIDRs: []string{"10.0.0.0/8"},
		Webhook: v1alpha1.WebhookConfig{Port: new(9443)},
	}
	want.APIVersion, want.Kind = "multicluster.crd.antrea.io/v1alpha1", "MultiClusterConfig"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// covers: MEM-GW-5
func TestConfiguredNetwork(t *testing.T) {
	config, problems := parseConfig([]byte(head + "serviceCIDR: 10.96.3.4/16\npodCIDRs: ['', 10.0.0.0/8]\ngatewayIPPrecedence: external\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := network(config)
	if got.ServiceRange.String() != "10.96.0.0/16" || len(got.PodCIDRs) != 1 || got.PodCIDRs[0].String() != "10.0.0.0/8" || got.Precedence != fabric.PrecedenceExternal {
		t.Errorf("the network is %+v", got)
	}
	if config, _ = parseConfig([]byte(head)); network(config).ServiceRange.IsValid() || network(config).PodCIDRs != nil {
		t.Errorf("without a word of it the network is %+v", network(config))
	}
}

func execute(args ...string) error {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	cmd := New(streams)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.Execute()
}
