package admission

import (
	"context"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/webhook"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
)

// caller reads what binds the user of a request: one object for a member, and
// who holds the member Role for whoever is not bound.
func (d *Decider) caller(ctx context.Context, r *admissionv1.AdmissionRequest) admission.Caller {
	var caller admission.Caller
	namespace, name, ok := account(r.UserInfo.Username)
	if ok && namespace == d.Area.Namespace {
		found, err := d.account(ctx, name)
		caller.Account = webhook.Known(ctx, found, err)
		if err != nil || found == nil || found.Annotated {
			return caller
		}
	}
	var bindings rbacv1.RoleBindingList
	err := d.Live.List(ctx, &bindings, client.InNamespace(d.Area.Namespace))
	caller.HoldsMemberRole = webhook.Known(ctx, holdsMemberRole(bindings.Items, r.UserInfo), err)
	return caller
}

// account is nil for one that does not exist.
func (d *Decider) account(ctx context.Context, name string) (*admission.Account, error) {
	object := metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	err := d.Live.Get(ctx, types.NamespacedName{Namespace: d.Area.Namespace, Name: name}, &object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := admission.AccountOf(name, object.Annotations)
	return &found, nil
}

// account is the ServiceAccount that a user name stands for.
func account(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}

// holdsMemberRole tells whether a binding grants the member Role to a user, by
// name or by one of the groups.
func holdsMemberRole(bindings []rbacv1.RoleBinding, user authenticationv1.UserInfo) bool {
	return slices.ContainsFunc(bindings, func(b rbacv1.RoleBinding) bool {
		return b.RoleRef.Kind == "Role" && b.RoleRef.Name == v1alpha1.MemberClusterRole &&
			slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return is(s, user) })
	})
}

func is(subject rbacv1.Subject, user authenticationv1.UserInfo) bool {
	switch subject.Kind {
	case rbacv1.UserKind:
		return subject.Name == user.Username
	case rbacv1.GroupKind:
		return slices.Contains(user.Groups, subject.Name)
	case rbacv1.ServiceAccountKind:
		return user.Username == "system:serviceaccount:"+subject.Namespace+":"+subject.Name
	}
	return false
}
