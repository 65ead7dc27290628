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

func TestWhatAnUpdateChanged(t *testing.T) {
	value := func(text string) *mvccpb.KeyValue { return &mvccpb.KeyValue{Value: []byte(text)} }
	before := value(`{"metadata":{"resourceVersion":"1","annotations":{"a":"1","b":"1"}},"spec":{"x":1},"status":{}}`)
	for name, c := range map[string]struct {
		after string
		want  []string
	}{
		"nothing but bookkeeping": {`{"metadata":{"resourceVersion":"2","annotations":{"a":"1","b":"1"}},"spec":{"x":1},"status":{}}`, nil},
		"one annotation":          {`{"metadata":{"annotations":{"a":"2","b":"1"}},"spec":{"x":1},"status":{}}`, []string{"metadata.annotations.a"}},
		"all annotations went":    {`{"metadata":{},"spec":{"x":1},"status":{}}`, []string{"metadata.annotations.a", "metadata.annotations.b"}},
		"spec and status":         {`{"metadata":{"annotations":{"a":"1","b":"1"}},"spec":{"x":2}}`, []string{"spec", "status"}},
	} {
		if diff := cmp.Diff(c.want, changed(before, value(c.after))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
