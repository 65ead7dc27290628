package mirror

import (
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/yaml"
)

// read reads a file, or standard input for "-".
func (c *classify) read(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(c.streams.In)
	}
	return os.ReadFile(path)
}

// configMapData is the data of a ConfigMap in YAML or JSON.
func configMapData(text []byte) (map[string]string, error) {
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
