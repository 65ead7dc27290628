package kubebin

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// What is built must be the module that people read and change.
func TestEmbeddedSourceIsFresh(t *testing.T) {
	for _, name := range sources {
		want, err := os.ReadFile(filepath.Join("../../../tools/kube", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := embedded.ReadFile("source/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("the copy of tools/kube/%s is stale; run `go generate ./internal/lab/kubebin`", name)
		}
	}
}
