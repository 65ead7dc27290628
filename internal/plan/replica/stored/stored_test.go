package stored_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/stored"
)

// protobuf is a ConfigMap as an API server stores it.
func protobuf(t *testing.T, change func(*corev1.ConfigMap)) []byte {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}, Data: map[string]string{"k": "v"}}
	change(object)
	raw, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Raw: raw}
	text, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), text...)
}

func TestFacts(t *testing.T) {
	cases := map[string]struct {
		value []byte
		want  selection.Facts
	}{
		"no mark":          {[]byte(`{"metadata":{"name":"a"}}`), selection.Facts{Read: true}},
		"label in JSON":    {[]byte(`{"metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"west"}}}`), selection.Facts{Read: true, Cluster: "west"}},
		"scope in JSON":    {[]byte(`{"metadata":{"annotations":{"baremetal.cluster.io/system-agent-auth-scope":"global"}}}`), selection.Facts{Read: true, GlobalScope: true}},
		"another scope":    {[]byte(`{"metadata":{"annotations":{"baremetal.cluster.io/system-agent-auth-scope":"west"}}}`), selection.Facts{Read: true}},
		"mark in the spec": {[]byte(`{"metadata":{},"spec":{"selector":{"cluster.x-k8s.io/cluster-name":"west"}}}`), selection.Facts{Read: true}},
		"label in protobuf": {protobuf(t, func(o *corev1.ConfigMap) { o.Labels = map[string]string{"cluster.x-k8s.io/cluster-name": "global"} }),
			selection.Facts{Read: true, Cluster: "global"}},
		"ciphertext is not read":       {[]byte("k8s:enc:aescbc:v1:key1:cluster.x-k8s.io/cluster-name"), selection.Facts{}},
		"garbage with a mark likewise": {[]byte("cluster.x-k8s.io/cluster-name"), selection.Facts{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := stored.Facts(c.value); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// The reason that is told is the worst of those that hold.
//
// covers: D-13, D-14
func TestDiffers(t *testing.T) {
	now := metav1.Unix(1700000000, 0)
	same := func(*corev1.ConfigMap) {}
	p := func(change func(*corev1.ConfigMap)) string { return string(protobuf(t, change)) }
	cases := map[string]struct {
		primary, standby string
		want             stored.Reason
	}{
		"deletion on the standby only": {`{"metadata":{"uid":"1"}}`, `{"metadata":{"uid":"1","deletionTimestamp":"2024-01-01T00:00:00Z"},"spec":{"a":1}}`, stored.DeletingOnStandby},
		"deletion on the primary only": {`{"metadata":{"deletionTimestamp":"2024-01-01T00:00:00Z"}}`, `{"metadata":{}}`, stored.DeletingOnPrimary},
		"another object":               {`{"metadata":{"uid":"1"}}`, `{"metadata":{"uid":"2","ownerReferences":[{"uid":"3"}]}}`, stored.OtherUID},
		"other owners":                 {`{"metadata":{}}`, `{"metadata":{"ownerReferences":[{"uid":"3"}],"finalizers":["f"]}}`, stored.OtherOwners},
		"other finalizers":             {`{"metadata":{}}`, `{"metadata":{"finalizers":["f"]},"spec":{}}`, stored.OtherFinalizers},
		"spec before status":           {`{"metadata":{},"spec":{"a":1},"status":{"b":1}}`, `{"metadata":{},"spec":{"a":2},"status":{"b":2}}`, stored.OtherSpec},
		"status alone":                 {`{"metadata":{},"spec":{"a":1},"status":{"b":1}}`, `{"metadata":{"labels":{"l":"x"}},"spec":{"a":1}}`, stored.OtherStatus},
		"data":                         {`{"metadata":{},"data":{"a":"1"}}`, `{"metadata":{},"data":{"a":"2"},"status":{}}`, stored.OtherContent},
		"labels":                       {`{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"labels":{"a":"2"}}}`, stored.OtherMetadata},
		"spaces":                       {`{"metadata":{}, "spec":{"a":1}}`, `{"metadata":{},"spec":{ "a":1}}`, stored.OtherEncoding},
		"ciphertext":                   {"k8s:enc:aescbc:v1:k:x", "k8s:enc:aescbc:v1:k:y", stored.Encrypted},
		"one side encrypted":           {`{"metadata":{}}`, "k8s:enc:aescbc:v1:k:y", stored.Encrypted},
		"garbage":                      {`{"metadata":{}}`, "garbage", stored.Undecodable},
		"an empty value":               {`{"metadata":{}}`, "", stored.Undecodable},
		"cut protobuf":                 {p(same), p(same)[:9], stored.Undecodable},
		"protobuf: deletion":           {p(same), p(func(o *corev1.ConfigMap) { o.DeletionTimestamp = &now }), stored.DeletingOnStandby},
		"protobuf: another object":     {p(same), p(func(o *corev1.ConfigMap) { o.UID = "2" }), stored.OtherUID},
		"protobuf: labels":             {p(same), p(func(o *corev1.ConfigMap) { o.Labels = map[string]string{"a": "b"} }), stored.OtherMetadata},
		"protobuf: data":               {p(same), p(func(o *corev1.ConfigMap) { o.Data["k"] = "w" }), stored.OtherContent},
		"protobuf against JSON":        {p(same), `{"metadata":{"name":"a","uid":"1"},"data":{"k":"v"}}`, stored.OtherContent},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := stored.Differs([]byte(c.primary), []byte(c.standby)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestReadTellsCiphertext(t *testing.T) {
	if _, err := stored.Read([]byte("k8s:enc:kms:v2:x")); !errors.Is(err, stored.ErrEncrypted) {
		t.Errorf("got %v", err)
	}
}
