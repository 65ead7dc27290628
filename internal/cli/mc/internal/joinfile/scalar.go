package joinfile

import (
	"strings"

	"sigs.k8s.io/yaml"
)

// scalar writes a string so that YAML reads a string again: a cluster may be
// called "1" or "true".
func scalar(value string) string {
	out, err := yaml.Marshal(value)
	if err != nil {
		return `""` // a string always marshals
	}
	return strings.TrimSpace(string(out))
}
