package run

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/document"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/member"
	"github.com/lockstep-dev/lockstep/internal/plan/fabric"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
)

// loadConfig reads the controllers' configuration file, of kind
// MultiClusterConfig. Everything wrong with it is told at once.
func loadConfig(path string) (*v1alpha1.MultiClusterConfig, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(fmt.Errorf("cannot read the configuration: %w", err))
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

// unreadable adds to the error about a file that cannot be read what to do.
func unreadable(err error) error {
	var file *fs.PathError
	if !errors.As(err, &file) {
		return err
	}
	return &exit.Error{Code: exit.Failed, Cause: err, Next: "name an existing file with --config"}
}

func parseConfig(data []byte) (*v1alpha1.MultiClusterConfig, []string) {
	config := &v1alpha1.MultiClusterConfig{}
	problems, ok := document.Check(data, config)
	if !ok {
		return nil, problems
	}
	if err := yaml.Unmarshal(data, config); err != nil {
		if len(problems) == 0 { // document.Check says most of it better
			problems = []string{oneLine(err.Error())}
		}
		return nil, problems
	}
	setDefaults(config)
	return config, append(problems, validate(config)...)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func setDefaults(c *v1alpha1.MultiClusterConfig) {
	if c.Health.HealthProbeBindAddress == "" {
		c.Health.HealthProbeBindAddress = ":8080"
	}
	if c.Metrics.BindAddress == "" {
		c.Metrics.BindAddress = "0"
	}
	if c.Webhook.Port == nil {
		c.Webhook.Port = new(9443)
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
	for _, cidr := range c.Admission.ReservedCIDRs {
		problems = append(problems, checkCIDR("admission.reservedCIDRs", cidr)...)
	}
	for _, name := range c.Admission.Administrators {
		if strings.HasPrefix(name, "system:serviceaccount") || name == "system:authenticated" || name == "system:unauthenticated" || name == "" {
			problems = append(problems, fmt.Sprintf("admission.administrators holds %q, which would free members from all rules", name))
		}
	}
	if port := *c.Webhook.Port; port < 0 || port > 65535 {
		problems = append(problems, fmt.Sprintf("webhook.port is %d, which is no port", port))
	}
	return problems
}

func checkCIDR(key, value string) []string {
	if _, err := netip.ParsePrefix(value); err != nil {
		return []string{fmt.Sprintf("%s holds %q, which is no CIDR such as 10.96.0.0/16", key, value)}
	}
	return nil
}

// network of a valid configuration. Ranges are told to others without the bits
// of a host that somebody may have left in them.
func network(c *v1alpha1.MultiClusterConfig) member.Network {
	n := member.Network{Precedence: fabric.Precedence(c.GatewayIPPrecedence)}
	if prefix, err := netip.ParsePrefix(c.ServiceCIDR); err == nil { // else empty
		n.ServiceRange = prefix.Masked()
	}
	for _, cidr := range c.PodCIDRs {
		if prefix, err := netip.ParsePrefix(cidr); err == nil {
			n.PodCIDRs = append(n.PodCIDRs, prefix.Masked())
		}
	}
	return n
}

// policy of a valid configuration.
func policy(c v1alpha1.AdmissionConfig) admission.Policy {
	p := admission.Policy{Administrators: c.Administrators, TrustUnbound: c.TrustUnboundCredentials, ExpiringTokens: c.RequireExpiringTokens}
	if len(p.Administrators) == 0 {
		p.Administrators = admission.DefaultAdministrators()
	}
	for _, cidr := range c.ReservedCIDRs {
		if prefix, err := netip.ParsePrefix(cidr); err == nil {
			p.Reserved = append(p.Reserved, prefix.Masked())
		}
	}
	return p
}
