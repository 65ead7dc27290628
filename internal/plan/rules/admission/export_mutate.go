package admission

import (
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Patch is one operation of a JSON patch (RFC 6902).
type Patch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// stretchedPolicy is the rule of MutateExport; it changes and never refuses.
var stretchedPolicy = rule.Rule{
	ID: "ADM-RE-M", Severity: rule.Info, Title: "Exported policies carry labels and the finalizer",
	Why:    "Administrators write policy exports by hand. The labels let the leader find them, and the finalizer lets it take the import away with the export.",
	Remedy: "nothing is to be done",
	Source: "webhooks of Antrea Multi-cluster v2.7",
}

// MutateExport returns the export as it is stored, and the patch that leads
// there; both nil when nothing is to change. Equal requests give equal patches.
//
// It goes by the payload, not by the kind, and runs before Export does.
func MutateExport(r Request[v1alpha1.ResourceExport]) (*v1alpha1.ResourceExport, []Patch) {
	if !r.complete() || r.deletes() || r.Object.Spec.ClusterNetworkPolicy == nil {
		return nil, nil
	}
	next := r.Object.DeepCopy()
	patches := label(next, map[string]string{
		v1alpha1.LabelSourceKind:      v1alpha1.KindAntreaClusterNetworkPolicy,
		v1alpha1.LabelSourceName:      next.Spec.Name,
		v1alpha1.LabelSourceNamespace: "",
	})
	if next.DeletionTimestamp == nil && !finalized(next) {
		if len(next.Finalizers) == 0 {
			patches = append(patches, Patch{"add", "/metadata/finalizers", []string{v1alpha1.FinalizerExport}})
		} else {
			patches = append(patches, Patch{"add", "/metadata/finalizers/-", v1alpha1.FinalizerExport})
		}
		next.Finalizers = append(next.Finalizers, v1alpha1.FinalizerExport)
	}
	if len(patches) == 0 {
		return nil, nil
	}
	return next, patches
}

// label sets labels and returns the patch for those that differ, by key.
func label(e *v1alpha1.ResourceExport, wanted map[string]string) []Patch {
	if len(e.Labels) == 0 {
		e.Labels = wanted
		return []Patch{{"add", "/metadata/labels", maps.Clone(wanted)}}
	}
	var patches []Patch
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if value, ok := e.Labels[key]; !ok || value != wanted[key] {
			e.Labels[key] = wanted[key]
			patches = append(patches, Patch{"add", "/metadata/labels/" + escape(key), wanted[key]})
		}
	}
	return patches
}

// escape writes a key as one step of a JSON pointer (RFC 6901).
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
