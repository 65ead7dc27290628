package identity

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// SliceName names EndpointSlice n that a cluster publishes for a Service in the
// common area: <cluster>.<namespace>.<name>.<n>, at most 192 characters before
// n where 253 are allowed.
func SliceName(cluster string, service types.NamespacedName, n int) string {
	return slicePrefix(cluster, service) + strconv.Itoa(n)
}

// SliceNumber reads n back from a SliceName of the same cluster and Service.
func SliceNumber(sliceName, cluster string, service types.NamespacedName) (n int, ok bool) {
	return number(sliceName, slicePrefix(cluster, service))
}

// SliceOwner reads cluster and Service back from a SliceName.
func SliceOwner(sliceName string) (cluster string, service types.NamespacedName, ok bool) {
	parts := strings.Split(sliceName, ".")
	if len(parts) != 4 {
		return "", types.NamespacedName{}, false
	}
	cluster, service = parts[0], types.NamespacedName{Namespace: parts[1], Name: parts[2]}
	_, ok = SliceNumber(sliceName, cluster, service)
	return cluster, service, ok
}

// ImportedSliceName names EndpointSlice n of a cluster beside the Service that
// stands for the import: <imported service>.<cluster>.<n>. Endpoints whose
// cluster nobody told (empty cluster) leave that part out.
func ImportedSliceName(importedService, cluster string, n int) string {
	return importedSlicePrefix(importedService, cluster) + strconv.Itoa(n)
}

// ImportedSliceNumber reads n back from an ImportedSliceName of the same
// Service and cluster.
func ImportedSliceNumber(sliceName, importedService, cluster string) (n int, ok bool) {
	return number(sliceName, importedSlicePrefix(importedService, cluster))
}

// ImportedSliceOwner reads the imported Service back from an ImportedSliceName of
// whatever cluster. Other names may have a dot as well: what it returns is only
// where to look.
func ImportedSliceOwner(sliceName string) (importedService string, ok bool) {
	importedService, _, ok = strings.Cut(sliceName, ".")
	return importedService, ok
}

func slicePrefix(cluster string, service types.NamespacedName) string {
	return cluster + "." + service.Namespace + "." + service.Name + "."
}

func importedSlicePrefix(importedService, cluster string) string {
	if cluster == "" {
		return importedService + "."
	}
	return importedService + "." + cluster + "."
}

// number accepts only what Itoa writes: "+1" and "01" are other objects than "1".
func number(name, prefix string) (int, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || strconv.Itoa(n) != digits {
		return 0, false
	}
	return n, true
}
