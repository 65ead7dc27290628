package arch_test

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/arch"
)

// layer is a row of the picture in ARCHITECTURE.md. Imports go downward only,
// and never from one place of a row to another.
type layer struct {
	places []string
	// below is why no lower layer may import this one.
	below string
	// apart is why the places of this layer may not import one another.
	apart string
}

// layers, from the top. Every package of the module lies in one of the places.
var layers = []layer{
	{
		places: []string{"cmd", "bench", "test", "internal/arch"},
		below:  "programs and tests use the product; the product does not know them",
		apart:  "programs and tests share through the packages below them",
	},
	{
		places: []string{"internal/cli"},
		below:  "the command line assembles; only a program may call it, and whatever is worth sharing belongs further down",
	},
	{
		places: []string{"internal/lab"},
		below:  "the product must not need the lab; only external test packages may use it from below",
	},
	{
		places: []string{"internal/leader", "internal/member", "internal/agent", "internal/mirror", "internal/upgrade", "internal/dashboard"},
		below:  "effects and plans serve loops, so they cannot depend on one",
		apart:  "loops run in different processes and clusters; they meet only through objects",
	},
	{
		places: []string{"internal/kube", "internal/etcd", "internal/host", "internal/proc", "internal/helm", "internal/oci"},
		below:  "a plan is decided from values; whoever holds a client can be surprised",
		apart:  "each effect touches one kind of thing; combining them is the work of a loop",
	},
	{
		places: []string{"internal/plan"},
		below:  "kinds and manifests are read by plans, not the other way round",
	},
	{
		places: []string{"config", "docs"},
		below:  "kinds do not know how they are installed or described",
		apart:  "manifests and documentation are data; who needs both reads both",
	},
	{
		places: []string{"api"},
	},
}

// outside maps, for each place, what it may not import from other modules and
// from the standard library to the reason why not.
var outside = map[string]map[string]string{
	"api": {
		"k8s.io/client-go":               "kinds are imported by everybody; a client would come with them",
		"sigs.k8s.io/controller-runtime": "kinds are imported by everybody; a client would come with them",
		"os":                             "kinds are values",
		"net/http":                       "kinds are values",
	},
	"internal/plan": {
		"k8s.io/client-go":               "a plan sees the world through its Observed value only",
		"sigs.k8s.io/controller-runtime": "a plan sees the world through its Observed value only",
		"go.etcd.io/etcd":                "a plan sees the world through its Observed value only",
		"github.com/vishvananda/netlink": "a plan sees the world through its Observed value only",
		"os":                             "a plan reads no file and no environment",
		"io/fs":                          "a plan reads no file and no environment",
		"os/exec":                        "a plan starts nothing",
		"net/http":                       "a plan talks to nobody",
		"syscall":                        "a plan asks the system nothing",
		"log":                            "a plan returns its reasons; the loop logs them",
		"log/slog":                       "a plan returns its reasons; the loop logs them",
		"github.com/go-logr/logr":        "a plan returns its reasons; the loop logs them",
		"k8s.io/klog":                    "a plan returns its reasons; the loop logs them",
		"context":                        "a plan does not wait, so there is nothing to cancel",
		"math/rand":                      "the same input gives the same plan",
		"math/rand/v2":                   "the same input gives the same plan",
		"crypto/rand":                    "the same input gives the same plan",
		"sync":                           "a plan shares nothing, so there is nothing to lock",
	},
	"config": {
		"k8s.io/client-go":               "manifests are data; internal/kube/install brings them into a cluster",
		"sigs.k8s.io/controller-runtime": "manifests are data; internal/kube/install brings them into a cluster",
	},
}

// clock is what a plan may not ask: time arrives as a value, so that a test
// can choose it.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Sleep"}

func TestImportsGoDownward(t *testing.T) {
	for _, file := range tree(t).Files {
		if !file.Module || file.Dir == "." {
			continue
		}
		from, level := placeOf(file.Dir)
		if from == "" {
			t.Errorf("%s: this folder is not in the picture of ARCHITECTURE.md; add it there and to layers in this test", file.Path)
			continue
		}
		for _, path := range file.Imports() {
			if to, inside := strings.CutPrefix(path, arch.Module+"/"); inside {
				if why := forbiddenInside(file, from, level, to); why != "" {
					t.Errorf("%s imports %s: %s", file.Path, to, why)
				}
				continue
			}
			if file.IsTest() {
				continue
			}
			for forbidden, why := range outside[from] {
				if path == forbidden || strings.Contains(forbidden, ".") && arch.Within(path, forbidden) {
					t.Errorf("%s imports %s: %s", file.Path, path, why)
				}
			}
		}
	}
}

// forbiddenInside is why a file may not import a package of this module;
// empty when it may.
func forbiddenInside(file arch.File, from string, level int, to string) string {
	place, at := placeOf(to)
	switch {
	case place == "" || place == from || at > level:
		return ""
	case file.IsExternalTest() && place != "internal/cli":
		return "" // a test from outside may play the part of any caller
	case at == level:
		return layers[at].apart
	default:
		return layers[at].below
	}
}

// placeOf finds the place a folder belongs to, and its layer.
func placeOf(dir string) (place string, level int) {
	for level, layer := range layers {
		for _, place := range layer.places {
			if arch.Within(dir, place) {
				return place, level
			}
		}
	}
	return "", -1
}

func TestPlansAskNoClock(t *testing.T) {
	tree := tree(t)
	for _, file := range tree.Files {
		if !arch.Within(file.Path, "internal/plan") || file.IsTest() {
			continue
		}
		ast.Inspect(file.AST, func(node ast.Node) bool {
			for _, name := range clock {
				if isSelector(node, "time", name) {
					t.Errorf("%s: time.%s: a plan gets the time as a value of what was observed", tree.Position(node), name)
				}
			}
			return true
		})
	}
}
