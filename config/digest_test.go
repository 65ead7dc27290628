package config_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/lockstep-dev/lockstep/config"
)

var update = flag.Bool("update-digests", false, "write digests.txt instead of comparing it")

// The manifests of this release are those that were written down.
func TestDigests(t *testing.T) {
	var list string
	for _, role := range []config.Role{config.Leader, config.Member} {
		objects, err := config.Render(role, config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		digest, err := config.Digest(objects)
		if err != nil {
			t.Fatal(err)
		}
		list += fmt.Sprintf("%s %s\n", role, digest)
		if *update {
			continue
		}
		if got, err := config.Verify(role); err != nil || got != digest {
			t.Errorf("%q, %v; run make generate", got, err)
		}
		objects[0].SetName("another")
		if changed, err := config.Digest(objects); err != nil || changed == digest {
			t.Errorf("another name has the same digest %s, %v", changed, err)
		}
	}
	if *update {
		if err := os.WriteFile("digests.txt", []byte(list), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
