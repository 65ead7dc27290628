package mc

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestResident(t *testing.T) {
	thing := func(group, kind, name string, owners ...metav1.OwnerReference) content {
		return content{schema.GroupKind{Group: group, Kind: kind},
			metav1.ObjectMeta{Name: name, UID: types.UID(kind + name), OwnerReferences: owners}}
	}
	by := func(apiVersion, kind, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(kind + name)}
	}
	for name, c := range map[string]struct {
		why     string
		objects []content
		want    string
	}{
		"nothing": {"an empty Namespace may go", nil, ""},
		"of every Namespace": {"Kubernetes makes these", []content{thing("", "ConfigMap", "kube-root-ca.crt"),
			thing("", "ServiceAccount", "default"), thing("", "Event", "cart.17"), thing("events.k8s.io", "Event", "cart.18")}, ""},
		"any kind": {"users keep more than Pods", []content{thing("example.com", "Database", "orders")}, `Database "orders"`},
		"our remains": {"the garbage collector comes after its Deployment has gone", []content{
			thing("", "Pod", "c-1-2", by("apps/v1", "ReplicaSet", "c-1")), thing("apps", "ReplicaSet", "c-1", by("apps/v1", "Deployment", "c"))}, ""},
		"owned by a thing of the cluster": {"whether such an owner is there was not looked at",
			[]content{thing("", "ConfigMap", "made", by("example.com/v1", "ClusterThing", "x"))}, `ConfigMap "made"`},
		"owned by what people keep": {"the owner is no trace of ours",
			[]content{thing("", "Secret", "made", by("example.com/v1", "Database", "orders")), thing("example.com", "Database", "orders")}, `Secret "made"`},
		"one owner of two is there": {"the garbage collector waits for both", []content{thing("", "Secret", "made",
			by("apps/v1", "Deployment", "c"), by("example.com/v1", "Database", "orders")), thing("example.com", "Database", "orders")}, `Secret "made"`},
		"a ring": {"what owns itself has no owner that has gone", []content{thing("", "Secret", "a", by("v1", "Secret", "a"))}, `Secret "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			all := contents{objects: c.objects, kinds: map[schema.GroupKind]bool{
				{Kind: "Secret"}: true, {Kind: "Pod"}: true, {Group: "apps", Kind: "ReplicaSet"}: true,
				{Group: "apps", Kind: "Deployment"}: true, {Group: "example.com", Kind: "Database"}: true,
			}}
			if got := all.resident(); got != c.want {
				t.Errorf("%q, want %q: %s", got, c.want, c.why)
			}
		})
	}
}

// What cannot be read may be there: the Namespace stays.
func TestInventoryNeedsTheKinds(t *testing.T) {
	if _, err := takeInventory(t.Context(), nil, nil, "area"); err == nil {
		t.Error("nothing was looked at, and yet the Namespace is taken for empty")
	}
}
