package evidence

import (
	"encoding/base64"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSubjectOfAToken(t *testing.T) {
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for name, tc := range map[string]struct{ token, namespace, account string }{
		"of a ServiceAccount": {token(`{"sub":"system:serviceaccount:area:east-token"}`), "area", "east-token"},
		"of a person":         {token(`{"sub":"anna"}`), "", ""},
		"no JSON":             {token(`{`), "", ""},
		"no JWT":              {"abc", "", ""},
		"nothing":             {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if namespace, account := Subject(tc.token); namespace != tc.namespace || account != tc.account {
				t.Errorf("it is of %q/%q, want %q/%q", namespace, account, tc.namespace, tc.account)
			}
		})
	}
}

// Notes that a member keeps on its ClusterSet, and its status, are no change of
// direction; a change of spec is.
func TestLastWriteIsOfContent(t *testing.T) {
	at := func(minute int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 3, 1, 8, minute, 0, 0, time.UTC)}
	}
	fields := func(text string) *metav1.FieldsV1 { return &metav1.FieldsV1{Raw: []byte(text)} }
	object := metav1.ObjectMeta{CreationTimestamp: *at(0), ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Time: at(5), FieldsV1: fields(`{"f:spec":{"f:leaders":{}}}`)},
		{Manager: "lockstep-member", Time: at(7), FieldsV1: fields(`{"f:metadata":{"f:annotations":{}}}`)},
		{Manager: "lockstep-member", Time: at(9), Subresource: "status", FieldsV1: fields(`{"f:status":{}}`)},
	}}
	if got := LastChange(&object, "spec"); !got.Equal(at(5).Time) {
		t.Errorf("it was directed at %s", got)
	}
}

func TestTagOfAnImage(t *testing.T) {
	for image, want := range map[string]string{
		"lockstep": "", "lockstep:v1.2": "v1.2", "registry.example.com:5000/lockstep": "", "registry.example.com:5000/lockstep:v1.2@sha256:00": "v1.2",
	} {
		if got := tagOf(image); got != want {
			t.Errorf("%s has tag %q, want %q", image, got, want)
		}
	}
}
