package journal

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// registry is where kube-apiserver keeps its objects.
const registry = "/registry/"

// parse reads a key of kube-apiserver's layout:
//
//	/registry/[<group of a custom resource>/]<resource>/[<namespace>/]<name>
//
// with two exceptions: Services and Endpoints are below services/.
func parse(key string) Write {
	rest, ok := strings.CutPrefix(key, registry)
	if !ok {
		return Write{Resource: key}
	}
	parts := strings.Split(rest, "/")
	resource, names := parts[0], parts[1:]
	switch {
	case strings.Contains(resource, ".") && len(names) > 1:
		resource, names = names[0]+"."+resource, names[1:]
	case resource == "services" && len(names) > 1:
		if names[0] == "endpoints" {
			resource = "endpoints"
		}
		names = names[1:]
	}
	w := Write{Resource: resource}
	if len(names) > 0 {
		w.Name = names[len(names)-1]
	}
	if len(names) > 1 {
		w.Namespace = names[len(names)-2]
	}
	return w
}

// managers lists the field managers in any of these values. Custom resources
// are JSON in etcd, others protobuf behind a prefix that the decoder knows.
func managers(values ...*mvccpb.KeyValue) []string {
	var found []string
	for _, value := range values {
		if value == nil || len(value.Value) == 0 {
			continue
		}
		for _, entry := range managedFields(value.Value) {
			if !slices.Contains(found, entry.Manager) {
				found = append(found, entry.Manager)
			}
		}
	}
	slices.Sort(found)
	return found
}

func managedFields(value []byte) []metav1.ManagedFieldsEntry {
	if value[0] == '{' {
		var partial metav1.PartialObjectMetadata
		if json.Unmarshal(value, &partial) != nil {
			return nil
		}
		return partial.ManagedFields
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(value, nil, nil)
	if err != nil {
		return nil // a kind only the API server knows, or no object
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil
	}
	return accessor.GetManagedFields()
}

// bookkeeping are fields that the API server changes with every write.
var bookkeeping = []string{"metadata.resourceVersion", "metadata.managedFields", "metadata.generation"}

// changed lists what differs between two versions of a custom resource; nothing
// for other kinds.
func changed(before, after *mvccpb.KeyValue) (parts []string) {
	var old, now map[string]any
	if before == nil || json.Unmarshal(before.Value, &old) != nil || json.Unmarshal(after.Value, &now) != nil {
		return nil
	}
	for part := range differences("", old, now, map[string]bool{"metadata": true, "metadata.annotations": true, "metadata.labels": true}) {
		if !slices.Contains(bookkeeping, part) {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	return parts
}

// differences names the keys whose values differ; it looks into those of open.
func differences(path string, old, now map[string]any, open map[string]bool) map[string]bool {
	found := map[string]bool{}
	for _, side := range []map[string]any{old, now} {
		for key := range side {
			name := strings.TrimPrefix(path+"."+key, ".")
			if reflect.DeepEqual(old[key], now[key]) {
				continue
			}
			if !open[name] {
				found[name] = true
				continue
			}
			oldInside, _ := old[key].(map[string]any) // absent counts as empty
			nowInside, _ := now[key].(map[string]any)
			for inside := range differences(name, oldInside, nowInside, open) {
				found[inside] = true
			}
		}
	}
	return found
}
