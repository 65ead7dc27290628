package charts_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/tools/charts"
)

// choice is one thing an installation can differ in, said twice: in values, and
// in options of Render.
type choice struct {
	values    map[string]any
	options   func(*config.Options)
	pod       func(*corev1.PodSpec)
	configure func(*v1alpha1.MultiClusterConfig)
}

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// choices by key of the values. Within a list at most one is taken.
var choices = map[string][]choice{
	"image": {
		{values: map[string]any{"repository": "registry.example.com:5000/a/lockstep", "tag": "v1.2.3"},
			options: func(o *config.Options) { o.Image = "registry.example.com:5000/a/lockstep:v1.2.3" }},
		{values: map[string]any{"digest": digest}, options: func(o *config.Options) { o.Image = "lockstep@" + digest }},
		{values: map[string]any{"pullPolicy": "Always"}, pod: func(pod *corev1.PodSpec) { pod.Containers[0].ImagePullPolicy = corev1.PullAlways }},
	},
	"replicas": {{values: value(3), options: func(o *config.Options) { o.Replicas = 3 }}},
	"logLevel": {
		{values: value("debug"), options: func(o *config.Options) { o.Verbose = true }},
		{values: value("info"), options: func(*config.Options) {}},
	},
	"admission": {
		{values: map[string]any{"enabled": true}, options: func(o *config.Options) { o.Admission = true }},
		{values: map[string]any{"enabled": false}, options: func(*config.Options) {}},
	},
	"resources": {
		// What is not named keeps its default: Helm merges maps.
		{values: map[string]any{"limits": map[string]any{"memory": "1Gi"}}, pod: memoryLimit("1Gi")},
		{values: map[string]any{"requests": map[string]any{"cpu": "2"}}, pod: func(pod *corev1.PodSpec) {
			pod.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
		}},
	},
	"imagePullSecrets": {{values: value([]any{map[string]any{"name": "registry"}}), pod: func(pod *corev1.PodSpec) {
		pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	}}},
	"nodeSelector": {{values: map[string]any{"pool": "system"}, pod: func(pod *corev1.PodSpec) { pod.NodeSelector["pool"] = "system" }}},
	"tolerations": {{values: value([]any{map[string]any{"operator": "Exists", "effect": "NoSchedule"}}), pod: func(pod *corev1.PodSpec) {
		pod.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	}}},
	"affinity": {{
		values: map[string]any{"podAntiAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{"topologyKey": "zone"}}}},
		pod: func(pod *corev1.PodSpec) {
			pod.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}},
			}}
		},
	}},
	"priorityClassName": {{values: value("system-cluster-critical"), pod: func(pod *corev1.PodSpec) { pod.PriorityClassName = "system-cluster-critical" }}},
	"config": {
		{values: map[string]any{"endpointIPType": "PodIP"}, configure: func(c *v1alpha1.MultiClusterConfig) { c.EndpointIPType = v1alpha1.EndpointIPTypePodIP }},
		{values: map[string]any{"serviceCIDR": "10.96.0.0/16", "podCIDRs": []any{"10.0.0.0/8", "fd00::/48"}, "gatewayIPPrecedence": "public", "enableStretchedNetworkPolicy": true},
			configure: func(c *v1alpha1.MultiClusterConfig) {
				c.ServiceCIDR, c.PodCIDRs, c.GatewayIPPrecedence, c.EnableStretchedNetworkPolicy = "10.96.0.0/16", []string{"10.0.0.0/8", "fd00::/48"}, "public", true
			}},
		{values: map[string]any{"admission": map[string]any{"trustUnboundCredentials": true, "reservedCIDRs": []any{"10.0.0.0/8"}}},
			configure: func(c *v1alpha1.MultiClusterConfig) {
				c.Admission.TrustUnboundCredentials, c.Admission.ReservedCIDRs = true, []string{"10.0.0.0/8"}
			}},
		{values: map[string]any{"metrics": map[string]any{"bindAddress": ":9090"}}, configure: func(c *v1alpha1.MultiClusterConfig) { c.Metrics.BindAddress = ":9090" }},
	},
}

const scalar = ""

// value is one that is no map.
func value(v any) map[string]any { return map[string]any{scalar: v} }

func (c choice) value() any {
	if v, ok := c.values[scalar]; ok {
		return v
	}
	return c.values
}

func memoryLimit(limit string) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) {
		pod.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse(limit)
	}
}

// check compares one combination of choices.
func check(chart, namespace string, taken map[string]choice) error {
	role := charts.Roles[chart]
	values, options := map[string]any{}, config.Options{Namespace: namespace}
	for _, key := range sorted(taken) {
		c := taken[key]
		values[key] = c.value()
		if c.options != nil {
			c.options(&options)
		}
		if c.configure != nil {
			options.Configure = c.configure
		}
	}
	options.Pod = func(pod *corev1.PodSpec) {
		for _, c := range taken {
			if c.pod != nil {
				c.pod(pod)
			}
		}
	}
	want, err := rendered(role, options)
	if err != nil {
		return err
	}
	got, err := helm(chart, namespace, values)
	if err != nil {
		return err
	}
	if err := hashed(got); err != nil {
		return err
	}
	return same(want.without("Namespace", "CustomResourceDefinition"), got)
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Each value alone does what the option of the same meaning does.
func TestEachValueIsAnOptionOfRender(t *testing.T) {
	for chart, role := range charts.Roles {
		for key, list := range choices {
			for _, c := range list {
				if err := check(chart, namespaces[role], map[string]choice{key: c}); err != nil {
					t.Errorf("%s: %s %v: %v", chart, key, c.value(), err)
				}
			}
		}
	}
}

// Any of them together, in any Namespace, as well.
func TestValuesDoNotGetInEachOthersWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chart := rapid.SampledFrom([]string{charts.Leader, charts.Member}).Draw(t, "chart")
		namespace := rapid.SampledFrom([]string{"antrea-multicluster", "kube-system", "default", "fleet", "123"}).Draw(t, "namespace")
		taken := map[string]choice{}
		for _, key := range sorted(choices) {
			if i := rapid.IntRange(-1, len(choices[key])-1).Draw(t, key); i >= 0 {
				taken[key] = choices[key][i]
			}
		}
		if err := check(chart, namespace, taken); err != nil {
			t.Fatal(err)
		}
	})
}

// Every key of values.yaml is described, and every described one is tried above.
func TestSchemaDescribesEveryValue(t *testing.T) {
	for chart := range charts.Roles {
		described := sorted(schemaOf(t, chart).Properties)
		tried := append(sorted(choices), "global") // global is Helm's own
		slices.Sort(tried)
		if diff := cmp.Diff(tried, described); diff != "" {
			t.Errorf("%s: the schema and the choices of this test differ: %s", chart, diff)
		}
	}
}

// The README of a chart has a line for every key.
func TestReadmesNameEveryValue(t *testing.T) {
	for _, chart := range []string{charts.CRDs, charts.Leader, charts.Member} {
		text, err := os.ReadFile(filepath.Join(folder(chart), "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range sorted(schemaOf(t, chart).Properties) {
			if key != "global" && !strings.Contains(string(text), "`"+key+"`") && !strings.Contains(string(text), "`"+key+".") {
				t.Errorf("charts/%s/README.md says nothing of %s", chart, key)
			}
		}
	}
}

// The keys under config are those of the controllers' own file.
func TestSchemaOfTheConfigurationIsThatOfItsType(t *testing.T) {
	for chart := range charts.Roles {
		got := schemaOf(t, chart).Properties["config"]
		for _, shape := range []struct {
			of     reflect.Type
			schema property
		}{
			{reflect.TypeFor[v1alpha1.MultiClusterConfig](), got},
			{reflect.TypeFor[v1alpha1.HealthConfig](), got.Properties["health"]},
			{reflect.TypeFor[v1alpha1.MetricsConfig](), got.Properties["metrics"]},
			{reflect.TypeFor[v1alpha1.WebhookConfig](), got.Properties["webhook"]},
			{reflect.TypeFor[v1alpha1.AdmissionConfig](), got.Properties["admission"]},
		} {
			var want []string
			for i := range shape.of.NumField() {
				if name, _, _ := strings.Cut(shape.of.Field(i).Tag.Get("json"), ","); name != "" {
					want = append(want, name)
				}
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, sorted(shape.schema.Properties)); diff != "" {
				t.Errorf("%s: keys of %s: %s", chart, shape.of.Name(), diff)
			}
			if shape.schema.AdditionalProperties != false {
				t.Errorf("%s: other keys of %s are let through", chart, shape.of.Name())
			}
		}
	}
}

type property struct {
	Properties           map[string]property
	AdditionalProperties any
}

func schemaOf(t *testing.T, chart string) property {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder(chart), "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var top property
	if err := json.Unmarshal(text, &top); err != nil {
		t.Fatal(err)
	}
	return top
}

// What cannot work is refused before anything is installed.
func TestBadValuesAreRefused(t *testing.T) {
	cases := map[string]struct {
		chart  string
		values map[string]any
		names  string
	}{
		"a key that does not exist":           {charts.Leader, map[string]any{"replica": 3}, "replica"},
		"no replica":                          {charts.Leader, map[string]any{"replicas": 0}, "replicas"},
		"a text where a number belongs":       {charts.Member, map[string]any{"replicas": "two"}, "replicas"},
		"a log level nobody knows":            {charts.Member, map[string]any{"logLevel": "loud"}, "logLevel"},
		"a tag with its repository":           {charts.Member, map[string]any{"image": map[string]any{"tag": "a/b:c"}}, "tag"},
		"a digest that is cut":                {charts.Member, map[string]any{"image": map[string]any{"digest": "sha256:0123"}}, "digest"},
		"a repository with white space":       {charts.Member, map[string]any{"image": map[string]any{"repository": "a b"}}, "repository"},
		"a key of the file in other letters":  {charts.Member, map[string]any{"config": map[string]any{"endpointIpType": "PodIP"}}, "endpointIpType"},
		"an endpointIPType nobody knows":      {charts.Member, map[string]any{"config": map[string]any{"endpointIPType": "IP"}}, "endpointIPType"},
		"a CIDR that is an address":           {charts.Member, map[string]any{"config": map[string]any{"serviceCIDR": "10.96.0.0"}}, "serviceCIDR"},
		"a port that no probe asks":           {charts.Leader, map[string]any{"config": map[string]any{"health": map[string]any{"healthProbeBindAddress": ":9440"}}}, "healthProbeBindAddress"},
		"a port no Service leads to":          {charts.Member, map[string]any{"config": map[string]any{"webhook": map[string]any{"port": 9444}}}, "port"},
		"admission in one word":               {charts.Leader, map[string]any{"admission": true}, "admission"},
		"a pull secret without its key":       {charts.Member, map[string]any{"imagePullSecrets": []any{"registry"}}, "imagePullSecrets"},
		"kinds of a role that does not exist": {charts.CRDs, map[string]any{"roles": []any{"gateway"}}, "roles"},
		"kinds of nobody":                     {charts.CRDs, map[string]any{"roles": []any{}}, "roles"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := helm(c.chart, "fleet", c.values)
			if err == nil || !strings.Contains(err.Error(), c.names) {
				t.Errorf("got %v, want a refusal that names %s", err, c.names)
			}
		})
	}
}
