package journal

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

func TestKeysOfTheAPIServer(t *testing.T) {
	for key, want := range map[string]Write{
		"/registry/pods/kube-system/a":                 {Resource: "pods", Namespace: "kube-system", Name: "a"},
		"/registry/namespaces/shop":                    {Resource: "namespaces", Name: "shop"},
		"/registry/services/specs/shop/cart":           {Resource: "services", Namespace: "shop", Name: "cart"},
		"/registry/services/endpoints/shop/cart":       {Resource: "endpoints", Namespace: "shop", Name: "cart"},
		"/registry/leases/kube-system/lockstep-member": {Resource: "leases", Namespace: "kube-system", Name: "lockstep-member"},
		"/registry/multicluster.x-k8s.io/serviceimports/shop/cart": {
			Resource: "serviceimports.multicluster.x-k8s.io", Namespace: "shop", Name: "cart",
		},
		"compact_rev_key": {Resource: "compact_rev_key"},
	} {
		if diff := cmp.Diff(want, parse(key)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}

func TestManagersOfACustomResource(t *testing.T) {
	before := &mvccpb.KeyValue{Value: []byte(`{"metadata":{"managedFields":[{"manager":"lockstep-member"}]}}`)}
	after := &mvccpb.KeyValue{Value: []byte(`{"metadata":{"managedFields":[{"manager":"kubectl"},{"manager":"lockstep-member"}]}}`)}
	if diff := cmp.Diff([]string{"kubectl", "lockstep-member"}, managers(before, after)); diff != "" {
		t.Error(diff)
	}
	if got := managers(nil, &mvccpb.KeyValue{}); got != nil {
		t.Errorf("nothing has managers %v", got)
	}
}
