// Package setting is the configuration file of a mirror: kind MirrorConfig. It
// is never an object of an API server.
package setting

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

// What the file calls itself.
const (
	APIVersion = "fleet.lockstep.dev/v1alpha1"
	Kind       = "MirrorConfig"
)

// Config is the schema of the file.
type Config struct {
	metav1.TypeMeta `json:",inline"`

	// Primary is read; Standby is written.
	Primary Side `json:"primary"`
	Standby Side `json:"standby"`
	// Prefix below which the API servers keep their objects; empty means /registry.
	Prefix string `json:"prefix,omitempty"`
	// RulesFile holds the ConfigMap etcd-sync-ignore-text, as YAML or JSON.
	RulesFile string `json:"rulesFile,omitempty"`
	// AdditionalIgnoreEqual are more keys that stay local.
	AdditionalIgnoreEqual []string `json:"additionalIgnoreEqual,omitempty"`
	// LocalCustomResourceDefinitions: the sides have different versions.
	LocalCustomResourceDefinitions bool `json:"localCustomResourceDefinitions,omitempty"`
	// FirstCopyMayDelete: the first copy may delete more than half of what the
	// standby has.
	FirstCopyMayDelete bool `json:"firstCopyMayDelete,omitempty"`
	// SpillDir is for the index of a copy; empty means the system's folder.
	SpillDir string `json:"spillDir,omitempty"`
	Lease    Lease  `json:"lease,omitempty"`
	// CheckInterval is how often both sides are compared; empty means 10m for the
	// mirror, 1m for the monitor.
	CheckInterval string `json:"checkInterval,omitempty"`
	// Listen is where probes, metrics and, of a monitor, /check are served.
	Listen string `json:"listen,omitempty"`
}

// Side is how to reach an etcd.
type Side struct {
	Endpoints []string `json:"endpoints"`
	CAFile    string   `json:"caFile,omitempty"`
	CertFile  string   `json:"certFile,omitempty"`
	KeyFile   string   `json:"keyFile,omitempty"`
	Username  string   `json:"username,omitempty"`
	// PasswordFile holds the password, and at most a line's end.
	PasswordFile string `json:"passwordFile,omitempty"`
}

// Lease elects one mirror among the replicas of a Deployment.
type Lease struct {
	// Disabled: the owner key in the standby's etcd alone decides.
	Disabled bool `json:"disabled,omitempty"`
	// Namespace of Lease etcd-sync-mirror; empty means cpaas-system.
	Namespace string `json:"namespace,omitempty"`
}

// Read reads and checks a configuration. A file that cannot be read is an
// *fs.PathError. Check is given the document and says
// what is wrong with its keys.
func Read(path string, check func(document []byte, into any) []string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	config := &Config{}
	problems := check(text, config)
	if len(problems) == 0 {
		if err := yaml.Unmarshal(text, config); err != nil {
			problems = []string{strings.Join(strings.Fields(err.Error()), " ")}
		} else {
			problems = config.problems()
		}
	}
	if len(problems) > 0 {
		return nil, &refusal.Refusal{
			What: fmt.Sprintf("cannot use configuration %q", path), Why: strings.Join(problems, "; "),
			Next: "correct the file; docs/mirror.md lists all keys",
		}
	}
	return config, nil
}

func (c *Config) problems() (problems []string) {
	if c.APIVersion != APIVersion || c.Kind != Kind {
		problems = append(problems, fmt.Sprintf("it is apiVersion %q, kind %q, not %q, %q", c.APIVersion, c.Kind, APIVersion, Kind))
	}
	problems = append(problems, c.Primary.problems("primary")...)
	problems = append(problems, c.Standby.problems("standby")...)
	for _, endpoint := range c.Primary.Endpoints {
		if slices.Contains(c.Standby.Endpoints, endpoint) {
			problems = append(problems, fmt.Sprintf("%s is an endpoint of both primary and standby", endpoint))
		}
	}
	if c.Prefix != "" && !strings.HasPrefix(c.Prefix, "/") {
		problems = append(problems, fmt.Sprintf("prefix %q does not begin with a slash", c.Prefix))
	}
	if _, err := c.Interval(time.Minute); err != nil {
		problems = append(problems, err.Error())
	}
	if c.Listen != "" && c.Listen != "0" {
		if _, _, err := net.SplitHostPort(c.Listen); err != nil {
			problems = append(problems, fmt.Sprintf("listen is %q, not an address such as :8080 or [::1]:8080", c.Listen))
		}
	}
	return problems
}

func (s Side) problems(name string) (problems []string) {
	if len(s.Endpoints) == 0 {
		problems = append(problems, name+".endpoints is empty")
	}
	for _, endpoint := range s.Endpoints {
		u, err := url.Parse(endpoint)
		switch {
		case err == nil && u.User != nil:
			// Endpoints are printed in errors, so it is not quoted here either.
			problems = append(problems, fmt.Sprintf("an URL of %s.endpoints holds a user's name; set %s.username and %s.passwordFile", name, name, name))
		case err != nil || u.Host == "" || !strings.HasPrefix(endpoint, "https://") && !strings.HasPrefix(endpoint, "http://"):
			problems = append(problems, fmt.Sprintf("%s.endpoints holds %q, which is no URL such as https://10.0.0.1:2379", name, endpoint))
		case strings.HasPrefix(endpoint, "https://") != strings.HasPrefix(s.Endpoints[0], "https://"):
			problems = append(problems, name+".endpoints mixes http and https")
		}
	}
	if (s.CertFile == "") != (s.KeyFile == "") {
		problems = append(problems, name+".certFile and "+name+".keyFile go together")
	}
	if (s.Username == "") != (s.PasswordFile == "") {
		problems = append(problems, name+".username and "+name+".passwordFile go together")
	}
	return problems
}

// Interval between comparisons.
func (c *Config) Interval(otherwise time.Duration) (time.Duration, error) {
	if c.CheckInterval == "" {
		return otherwise, nil
	}
	every, err := time.ParseDuration(c.CheckInterval)
	if err != nil || every <= 0 {
		return 0, fmt.Errorf("checkInterval is %q, not a time such as 1m or 90s", c.CheckInterval)
	}
	return every, nil
}

// Rules are the built-in ones with those of the installation.
func (c *Config) Rules() (selection.Rules, []string, error) {
	rules := selection.Rules{Prefix: c.Prefix, LocalDefinitions: c.LocalCustomResourceDefinitions}
	var data map[string]string
	if c.RulesFile != "" {
		text, err := os.ReadFile(c.RulesFile)
		if err != nil {
			return rules, nil, fmt.Errorf("cannot read the rules of the mirror: %w", err)
		}
		if data, err = selection.ConfigMapData(text); err != nil {
			return rules, nil, fmt.Errorf("cannot read the rules in %s: %w; give the ConfigMap %s as YAML or JSON", c.RulesFile, err, selection.ConfigMapName)
		}
	}
	lists, err := rules.ParseLists(data, c.AdditionalIgnoreEqual)
	return rules.With(lists), lists.Notices, err
}

// Open connects to one side. Its files are read anew, so that a certificate that
// was renewed is used from the next connection on.
func (s Side) Open(ctx context.Context) (*etcd.Client, error) {
	options := etcd.Options{Endpoints: s.Endpoints, Username: s.Username}
	if s.PasswordFile != "" {
		password, err := os.ReadFile(s.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read the password of etcd: %w", err)
		}
		options.Password = strings.TrimRight(string(password), "\r\n")
	}
	if strings.HasPrefix(s.Endpoints[0], "https:") {
		config, err := etcd.Files{CA: s.CAFile, Cert: s.CertFile, Key: s.KeyFile}.Config()
		if err != nil {
			return nil, err
		}
		options.TLS = config
	}
	return etcd.Open(ctx, options)
}

// Open connects to both sides; done ends that.
func (c *Config) Open(ctx context.Context) (primary, standby *etcd.Client, done func(), err error) {
	primary, err = c.Primary.Open(ctx)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("primary: %w", err)
	}
	standby, err = c.Standby.Open(ctx)
	if err != nil {
		_ = primary.Close()
		return nil, nil, nil, fmt.Errorf("standby: %w", err)
	}
	return primary, standby, func() { _ = primary.Close(); _ = standby.Close() }, nil
}
