package charts_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"

	"github.com/lockstep-dev/lockstep/tools/charts"
)

// root of the repository.
var root = filepath.Join("..", "..")

func folder(chart string) string { return filepath.Join(root, "charts", chart) }

// What lies below charts/ is what make generate makes today, and nothing else.
func TestChartsAreFresh(t *testing.T) {
	made, err := charts.Files()
	if err != nil {
		t.Fatal(err)
	}
	want, have := map[string]string{}, map[string]string{}
	for name, text := range made {
		want[name] = string(text)
	}
	dir := filepath.Join(root, "charts")
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		have[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(have, want); diff != "" {
		t.Errorf("the charts are stale; run make generate:\n%s", diff)
	}
}

func TestHelmFindsNothingToComplainOf(t *testing.T) {
	for _, chart := range []string{charts.CRDs, charts.Leader, charts.Member} {
		lint := action.NewLint()
		lint.Strict = true
		result := lint.Run([]string{folder(chart)}, nil)
		for _, err := range result.Errors {
			t.Errorf("%s: %v", chart, err)
		}
		for _, message := range result.Messages {
			t.Log(chart, message)
		}
	}
}
