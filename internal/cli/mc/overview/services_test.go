package overview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A Service that fails in the same way in many clusters is one line, and clusters
// that say something else are not drowned by it.
func TestOneLineForWhatSeveralClustersSay(t *testing.T) {
	said := agreement{}
	said.add("ports differ", "east")
	said.add("types differ", "hub")
	said.add("ports differ", "west")
	var lines []string
	for _, s := range said.take() {
		lines = append(lines, s.clusters()+": "+s.why)
	}
	if diff := cmp.Diff([]string{`clusters "east", "west": ports differ`, `cluster "hub": types differ`}, lines); diff != "" {
		t.Error(diff)
	}
	if left := said.take(); len(left) != 0 {
		t.Errorf("of the next Service: %v", left)
	}
}
