package admission

import (
	"encoding/json"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Request is what somebody asks of the API server, decoded.
type Request[T any] struct {
	Operation   admissionv1.Operation
	User        authenticationv1.UserInfo
	Namespace   string
	Name        string // empty while the server has yet to choose one
	Subresource string
	// DryRun changes no decision: the answer must be the one of the real request.
	DryRun bool
	// Object is the new object; nil for DELETE. Old is the present one; nil for
	// CREATE. Either is nil as well when it could not be decoded.
	Object, Old *T
}

// Decode reads a request as the API server sends it. What cannot be decoded is
// left nil, and every list of steps begins by refusing that.
func Decode[T any](r *admissionv1.AdmissionRequest) Request[T] {
	if r == nil {
		return Request[T]{}
	}
	return Request[T]{
		Operation: r.Operation, User: r.UserInfo, Namespace: r.Namespace, Name: r.Name,
		Subresource: r.SubResource, DryRun: r.DryRun != nil && *r.DryRun,
		Object: decode[T](r.Object), Old: decode[T](r.OldObject),
	}
}

func decode[T any](raw runtime.RawExtension) *T {
	object := new(T)
	if len(raw.Raw) == 0 || string(raw.Raw) == "null" || json.Unmarshal(raw.Raw, object) != nil {
		return nil
	}
	return object
}

func (r Request[T]) creates() bool { return r.Operation == admissionv1.Create }
func (r Request[T]) updates() bool { return r.Operation == admissionv1.Update }
func (r Request[T]) deletes() bool { return r.Operation == admissionv1.Delete }

// complete tells whether the objects that the operation has are there.
func (r Request[T]) complete() bool {
	switch r.Operation {
	case admissionv1.Create:
		return r.Object != nil
	case admissionv1.Update:
		return r.Object != nil && r.Old != nil
	case admissionv1.Delete:
		return r.Old != nil
	}
	return false
}

// subject is the object the request is about: the new one, for DELETE the old.
func (r Request[T]) subject() *T {
	if r.deletes() {
		return r.Old
	}
	return r.Object
}

// account is the ServiceAccount the caller is; ok is false for everybody else.
func account(user authenticationv1.UserInfo) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user.Username, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}
