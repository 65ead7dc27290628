package config_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/lockstep-dev/lockstep/config"
)

var update = flag.Bool("update-digests", false, "write digests.txt instead of comparing it")

// The manifests of this release are those that were written down, with the webhook
// configurations and without.
func TestDigests(t *testing.T) {
	var list string
	for _, of := range []struct {
		name      string
		role      config.Role
		admission bool
	}{{"leader", config.Leader, false}, {"leader+admission", config.Leader, true}, {"member", config.Member, false}, {"member+admission", config.Member, true}} {
		objects, err := config.Render(of.role, config.Options{Admission: of.admission})
		if err != nil {
			t.Fatal(err)
		}
		digest, err := config.Digest(objects)
		if err != nil {
			t.Fatal(err)
		}
		list += fmt.Sprintf("%s %s\n", of.name, digest)
		if *update {
			continue
		}
		if got, err := config.Verify(of.role, of.admission); err != nil || got != digest {
			t.Errorf("%q, %v; run make generate", got, err)
		}
		for i := range objects { // each object counts
			name := objects[i].GetName()
			objects[i].SetName("another")
			if changed, err := config.Digest(objects); err != nil || changed == digest {
				t.Errorf("%s: another name of %s %q has the same digest %s, %v", of.name, objects[i].GetKind(), name, changed, err)
			}
			objects[i].SetName(name)
		}
	}
	if *update {
		if err := os.WriteFile("digests.txt", []byte(list), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
