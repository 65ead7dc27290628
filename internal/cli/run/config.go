package run

import (
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/spelling"
)

// loadConfig reads the controllers' configuration file, of kind
// MultiClusterConfig. Everything wrong with it is told at once.
func loadConfig(path string) (*v1alpha1.MultiClusterConfig, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w; name an existing file with --config", err)
	}
	config, problems := parseConfig(data)
	if len(problems) > 0 {
		return nil, &refusal.Refusal{
			What: fmt.Sprintf("cannot use configuration %q", path),
			Why:  strings.Join(problems, "; "),
			Next: "correct the file; docs/configuration.md lists all keys",
		}
	}
	return config, nil
}

func parseConfig(data []byte) (*v1alpha1.MultiClusterConfig, []string) {
	var raw map[string]any
	if err := yaml.Unmarshal(data, &raw); err != nil {
		return nil, []string{"it is not YAML: " + strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")}
	}
	problems := unknownKeys("", raw, reflect.TypeFor[v1alpha1.MultiClusterConfig]())
	config := &v1alpha1.MultiClusterConfig{}
	if err := yaml.Unmarshal(data, config); err != nil {
		return nil, append(problems, strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "))
	}
	setDefaults(config)
	return config, append(problems, validate(config)...)
}

func setDefaults(c *v1alpha1.MultiClusterConfig) {
	if c.Health.HealthProbeBindAddress == "" {
		c.Health.HealthProbeBindAddress = ":8080"
	}
	if c.Metrics.BindAddress == "" {
		c.Metrics.BindAddress = "0"
	}
	if c.GatewayIPPrecedence == "" {
		c.GatewayIPPrecedence = "private"
	}
	if c.EndpointIPType == "" {
		c.EndpointIPType = v1alpha1.EndpointIPTypeClusterIP
	}
	c.PodCIDRs = slices.DeleteFunc(c.PodCIDRs, func(cidr string) bool { return cidr == "" })
}

func validate(c *v1alpha1.MultiClusterConfig) (problems []string) {
	if want := v1alpha1.GroupVersion.String(); c.APIVersion != want || c.Kind != v1alpha1.KindMultiClusterConfig {
		problems = append(problems, fmt.Sprintf("it is apiVersion %q, kind %q, not %q, %q", c.APIVersion, c.Kind, want, v1alpha1.KindMultiClusterConfig))
	}
	oneOf := func(key, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			problems = append(problems, fmt.Sprintf("%s is %q, not one of %s", key, value, strings.Join(allowed, ", ")))
		}
	}
	oneOf("endpointIPType", string(c.EndpointIPType), string(v1alpha1.EndpointIPTypeClusterIP), string(v1alpha1.EndpointIPTypePodIP))
	oneOf("gatewayIPPrecedence", c.GatewayIPPrecedence, "private", "internal", "public", "external")
	if c.ServiceCIDR != "" {
		problems = append(problems, checkCIDR("serviceCIDR", c.ServiceCIDR)...)
	}
	for _, cidr := range c.PodCIDRs {
		problems = append(problems, checkCIDR("podCIDRs", cidr)...)
	}
	return problems
}

func checkCIDR(key, value string) []string {
	if _, err := netip.ParsePrefix(value); err != nil {
		return []string{fmt.Sprintf("%s holds %q, which is no CIDR such as 10.96.0.0/16", key, value)}
	}
	return nil
}

// unknownKeys walks a document beside the type it is meant for.
func unknownKeys(path string, document map[string]any, shape reflect.Type) (problems []string) {
	fields := map[string]reflect.Type{}
	collect(shape, fields)
	known := make([]string, 0, len(fields))
	for name := range fields {
		known = append(known, name)
	}
	slices.Sort(known)
	for key, value := range document {
		field, ok := fields[key]
		if !ok {
			problems = append(problems, fmt.Sprintf("unknown key %q; did you mean %q?", path+key, path+spelling.Nearest(key, known)))
			continue
		}
		if inner, isMap := value.(map[string]any); isMap && field.Kind() == reflect.Struct {
			problems = append(problems, unknownKeys(path+key+".", inner, field)...)
		}
	}
	slices.Sort(problems)
	return problems
}

func collect(shape reflect.Type, fields map[string]reflect.Type) {
	for i := range shape.NumField() {
		field := shape.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && options == "inline" {
			collect(field.Type, fields)
		} else {
			fields[name] = field.Type
		}
	}
}
