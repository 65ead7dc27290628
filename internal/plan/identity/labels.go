package identity

import (
	"crypto/sha1" // the wire's choice: it names, and proves nothing
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

// labelHashDigits is how much of the SHA-1 the wire keeps: 64 bits.
const labelHashDigits = 16

// LabelHash names the LabelIdentity, and its ResourceImport, of a normalized
// label "ns:…&pod:…": the first 16 hex digits of its SHA-1. Two labels can meet
// in one hash, so readers compare the label itself.
func LabelHash(normalized string) string {
	sum := sha1.Sum([]byte(normalized))
	return hex.EncodeToString(sum[:])[:labelHashDigits]
}

// LabelIdentityExportName names a cluster's ResourceExport of a normalized
// label: <cluster>-<hash>.
func LabelIdentityExportName(cluster, normalized string) string {
	return cluster + "-" + LabelHash(normalized)
}

// NormalizedLabel joins the labels of a Namespace and of a Pod in it:
// ns:<key=value,…>&pod:<key=value,…>, each sorted by key.
func NormalizedLabel(namespace, pod map[string]string) string {
	return "ns:" + joinLabels(namespace) + "&pod:" + joinLabels(pod)
}

func joinLabels(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}
