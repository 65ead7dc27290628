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

// noLabels stands for an empty set in labels that old versions wrote.
const noLabels = "<none>"

// ParseLabel reads the labels of the Namespace and of the Pod back from a
// normalized label; ok is false for any other text. An empty set may be written
// as "<none>". The greedy pattern of the wire, ns:(.*)&pod:(.*), is unambiguous,
// because no label holds a colon.
func ParseLabel(normalized string) (namespace, pod map[string]string, ok bool) {
	rest, ok := strings.CutPrefix(normalized, "ns:")
	if !ok {
		return nil, nil, false
	}
	cut := strings.LastIndex(rest, "&pod:")
	if cut < 0 {
		return nil, nil, false
	}
	namespace, okNamespace := splitLabels(rest[:cut])
	pod, okPod := splitLabels(rest[cut+len("&pod:"):])
	return namespace, pod, okNamespace && okPod
}

func splitLabels(joined string) (labels map[string]string, ok bool) {
	labels = map[string]string{}
	if joined == "" || joined == noLabels {
		return labels, true
	}
	for pair := range strings.SplitSeq(joined, ",") {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return nil, false
		}
		labels[key] = value
	}
	return labels, true
}
