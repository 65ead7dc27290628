package install

import (
	"cmp"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	mcscrd "sigs.k8s.io/mcs-api/config/crd"
)

// release is how the MCS project numbers its CRDs: the release of the project
// and, within it, how often the schema has changed.
type release struct {
	version  *version.Version
	revision int
}

// releaseOf reads the labels of a CRD. ok is false for a CRD without them;
// before v0.2.0 and in copies of other projects there are none.
func releaseOf(crd *unstructured.Unstructured) (r release, ok bool, err error) {
	labels := crd.GetLabels()
	text, ok := labels[mcscrd.ReleaseVersionLabel]
	if !ok {
		return release{}, false, nil
	}
	if r.version, err = version.ParseSemantic(text); err != nil {
		return release{}, false, fmt.Errorf("label %s: %w", mcscrd.ReleaseVersionLabel, err)
	}
	if text, ok := labels[mcscrd.CustomResourceDefinitionSchemaRevisionLabel]; ok {
		if r.revision, err = strconv.Atoi(text); err != nil {
			return release{}, false, fmt.Errorf("label %s: %w", mcscrd.CustomResourceDefinitionSchemaRevisionLabel, err)
		}
	}
	return r, true, nil
}

func (r release) compare(other release) int {
	switch {
	case r.version.LessThan(other.version):
		return -1
	case other.version.LessThan(r.version):
		return 1
	default:
		return cmp.Compare(r.revision, other.revision)
	}
}

func (r release) String() string {
	return fmt.Sprintf("v%s revision %d", r.version, r.revision)
}

// reasonToKeep is empty when wanted may replace found. A newer CRD of the MCS
// API is never replaced by an older one, whose schema would silently drop the
// newer fields of other people's objects. A CRD whose labels cannot be
// understood counts as newer.
func reasonToKeep(found, wanted *unstructured.Unstructured) string {
	if found == nil || !isKind(wanted, crdKind) {
		return ""
	}
	want, numbered, err := releaseOf(wanted)
	if err != nil || !numbered {
		return "" // not a CRD of the MCS API
	}
	have, numbered, err := releaseOf(found)
	switch {
	case err != nil:
		return fmt.Sprintf("its release is not known: %v", err)
	case numbered && have.compare(want) > 0:
		return fmt.Sprintf("%s is newer than %s", have, want)
	default:
		return ""
	}
}

// servedVersions lists the versions of a CRD that clients can use.
func servedVersions(crd *unstructured.Unstructured) []string {
	var served []string
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["served"] == true {
			if name, ok := v["name"].(string); ok {
				served = append(served, name)
			}
		}
	}
	return served
}
