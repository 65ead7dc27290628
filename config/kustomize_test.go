package config

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	mcscrd "sigs.k8s.io/mcs-api/config/crd"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the CRDs of the MCS API instead of comparing them")

// kustomize reads files only: the CRDs of the MCS API lie beside ours as the
// release of that project that go.mod names has them.
func TestMCSCRDsAreThoseOfTheModule(t *testing.T) {
	for name, text := range map[string][]byte{
		"multicluster.x-k8s.io_serviceexports.yaml": mcscrd.ServiceExportCRD,
		"multicluster.x-k8s.io_serviceimports.yaml": mcscrd.ServiceImportCRD,
	} {
		name = filepath.Join("crd", name)
		if *update {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		present, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(present) != string(text) {
			t.Errorf("%s is stale; run make generate", name)
		}
	}
}

// A manifest that its kustomization does not list would be missing only for
// those who install with kubectl. The objects themselves are compared in
// tools/charts, which has kustomize.
func TestKustomizationsListEveryFile(t *testing.T) {
	for dir, without := range map[string][]string{
		"leader":           nil,
		"member":           nil,
		"admission/leader": nil,
		"admission/member": nil,
		"crd": {
			"multicluster.crd.antrea.io_clusterclaims.yaml", // a kind that upstream removed
			"fleet.lockstep.dev_upgraderuns.yaml",           // made by whoever makes the first run
		},
	} {
		var list struct{ Resources []string }
		text, err := os.ReadFile(filepath.Join(dir, kustomization))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, &list); err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			wanted := name != kustomization && !slices.Contains(without, name)
			if listed := slices.Contains(list.Resources, name); listed != wanted {
				t.Errorf("%s: %s is listed: %v", dir, name, listed)
			}
		}
	}
}

// Who applies the files as they are gets the annotation that Render computes.
func TestConfigHashInTheFileIsThatOfTheFile(t *testing.T) {
	for _, role := range roles {
		var file struct {
			Spec struct {
				Template struct {
					Metadata struct{ Annotations map[string]string }
				}
			}
		}
		text, err := os.ReadFile(filepath.Join(string(role), "deployment.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		got := file.Spec.Template.Metadata.Annotations[ConfigHashAnnotation]
		want := deployment(t, render(t, role, Options{})).Spec.Template.Annotations[ConfigHashAnnotation]
		if got != want {
			t.Errorf("%s/deployment.yaml: annotation %s is %q; the configuration has %q", role, ConfigHashAnnotation, got, want)
		}
	}
}
