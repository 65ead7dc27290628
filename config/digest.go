package config

import (
	"crypto/sha256"
	_ "embed" // for the list of digests
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// digests are those of the manifests as they were released: one line for each
// role, its name and what Digest says of Render without options, and one more with
// the webhook configurations.
//
//go:embed digests.txt
var digests string

// Digest is one text for all of the objects: "sha256:" and the hexadecimal sum
// over their JSON, in order. Equal objects have equal digests.
func Digest(objects []*unstructured.Unstructured) (string, error) {
	sum := sha256.New()
	encoder := json.NewEncoder(sum)
	for _, obj := range objects {
		if err := encoder.Encode(obj.Object); err != nil {
			return "", fmt.Errorf("%s %q: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// Verify compares the manifests in this program with the digest that was
// written down for them, and returns it. With admission they have the webhook
// configurations among them.
func Verify(role Role, admission bool) (string, error) {
	objects, err := Render(role, Options{Admission: admission})
	if err != nil {
		return "", err
	}
	have, err := Digest(objects)
	if err != nil {
		return "", err
	}
	if want := written(role, admission); have != want {
		return "", fmt.Errorf("the manifests of the %s have digest %s, written down for this release is %s", role, have, want)
	}
	return have, nil
}

func written(role Role, admission bool) string {
	name := string(role)
	if admission {
		name += "+admission"
	}
	for line := range strings.Lines(digests) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			return fields[1]
		}
	}
	return "none"
}
