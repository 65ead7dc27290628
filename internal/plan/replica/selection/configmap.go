package selection

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// ConfigMapData is the data of a ConfigMap in YAML or JSON.
func ConfigMapData(text []byte) (map[string]string, error) {
	var object struct {
		Kind string            `json:"kind"`
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	if object.Kind != "ConfigMap" {
		return nil, fmt.Errorf("it is a %q, not a ConfigMap", object.Kind)
	}
	return object.Data, nil
}
