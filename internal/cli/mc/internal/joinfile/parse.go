package joinfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/plan/spelling"
)

// File is what a join config file holds.
type File struct {
	Config Config
	// Token is the member's token Secret, when the file has one.
	Token *corev1.Secret
	// Ignored are sentences about keys of the config that mean nothing here, which may
	// be those of a later version, or mistyped.
	Ignored []string
}

// Parse reads a join config, with or without a token Secret beside it. A key that is
// not known is ignored, as the wire wants it (section 5.9 of the specification).
func Parse(data []byte) (File, error) {
	documents, err := split(data)
	if err != nil {
		return File{}, err
	}
	var file File
	var found bool
	for _, d := range documents {
		switch {
		case d.kind == Kind && !found:
			file.Config, file.Ignored, err = d.config()
			found = true
		case d.isSecret() && file.Token == nil:
			file.Token, err = d.secret()
		default:
			err = fmt.Errorf("document %d is a %s; wanted are one %s and at most one Secret", d.number, d.describe(), Kind)
		}
		if err != nil {
			return File{}, err
		}
	}
	if !found {
		return File{}, fmt.Errorf("no document of kind %s", Kind)
	}
	return file, nil
}

// document is one document that holds more than comments.
type document struct {
	number  int // from 1, as a person counts
	version string
	kind    string
	content map[string]any
	json    []byte
}

func split(data []byte) ([]document, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var documents []document
	for number := 1; ; number++ {
		raw, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		d, err := decode(number, raw)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		if d.content != nil {
			documents = append(documents, d)
		}
	}
}

func decode(number int, raw []byte) (document, error) {
	d := document{number: number}
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return d, err
	}
	d.json = asJSON
	var anything any
	if err := yaml.Unmarshal(asJSON, &anything); err != nil || anything == nil {
		return d, err
	}
	content, ok := anything.(map[string]any)
	if !ok {
		return d, errors.New("it is no mapping of keys to values")
	}
	d.content = content
	d.version, _ = content["apiVersion"].(string)
	d.kind, _ = content["kind"].(string)
	return d, nil
}

func (d document) describe() string {
	if d.kind == "" {
		return "document without kind"
	}
	return fmt.Sprintf("%s of %s", d.kind, d.version)
}

// config collects all problems, so that a file is corrected once, and what it ignores.
func (d document) config() (_ Config, ignored []string, _ error) {
	if d.version != APIVersion {
		return Config{}, nil, fmt.Errorf("apiVersion is %q, wanted is %q", d.version, APIVersion)
	}
	var config Config
	fields := map[string]*string{"apiVersion": new(string), "kind": new(string)}
	for _, f := range config.fields() {
		fields[f.key] = f.value
	}
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(d.content)) {
		target, known := fields[key]
		if !known {
			ignored = append(ignored, spelling.UnknownKey(key, slices.Sorted(maps.Keys(fields))))
			continue
		}
		problems = append(problems, set(target, key, d.content[key]))
	}
	return config, ignored, errors.Join(problems...)
}

func set(target *string, key string, value any) error {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		*target = v
		return nil
	default:
		return fmt.Errorf("%s is %v, which YAML reads as no string; put it in quotes", key, v)
	}
}
