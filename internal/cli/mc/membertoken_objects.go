package mc

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// meta of an object the command line makes: the annotation is what lets the
// command line remove it again.
func (o MemberTokenOptions) meta(annotations map[string]string) metav1.ObjectMeta {
	all := map[string]string{v1alpha1.AnnotationCreatedByCLI: "true"}
	maps.Copy(all, annotations)
	return metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, Annotations: all}
}

func (r *tokenRun) ensureAccount(ctx context.Context) error {
	wanted := &corev1.ServiceAccount{ObjectMeta: r.meta(map[string]string{v1alpha1.AnnotationClusterID: r.ClusterID})}
	done, err := ensure(ctx, r.client, wanted, r.bind)
	if err != nil {
		return err
	}
	record(r, "ServiceAccount", done)
	if r.result.Rebound != "" {
		r.undo.last(fmt.Sprintf("bind ServiceAccount %q to %q again", r.Name, r.result.Rebound), done.takeBack(r.client, rebind))
	}
	return nil
}

// bind gives a present ServiceAccount the wanted ID. One bound to another ID is
// bound anew: that is how a credential follows a renamed cluster.
func (r *tokenRun) bind(account *corev1.ServiceAccount) error {
	if bound := account.Annotations[v1alpha1.AnnotationClusterID]; bound != r.ClusterID {
		r.result.Rebound = bound
		metav1.SetMetaDataAnnotation(&account.ObjectMeta, v1alpha1.AnnotationClusterID, r.ClusterID)
	}
	return nil
}

func rebind(account, before *corev1.ServiceAccount) {
	metav1.SetMetaDataAnnotation(&account.ObjectMeta, v1alpha1.AnnotationClusterID, before.Annotations[v1alpha1.AnnotationClusterID])
}

func (r *tokenRun) ensureBinding(ctx context.Context) error {
	wanted := &rbacv1.RoleBinding{
		ObjectMeta: r.meta(nil),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: v1alpha1.MemberClusterRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: r.Name, Namespace: r.Namespace}},
	}
	done, err := ensure(ctx, r.client, wanted, func(present *rbacv1.RoleBinding) error {
		if present.RoleRef != wanted.RoleRef || !equality.Semantic.DeepEqual(present.Subjects, wanted.Subjects) {
			return r.foreign("RoleBinding", "grants something else")
		}
		return nil
	})
	if err == nil {
		record(r, "RoleBinding", done)
	}
	return err
}

// ensureSecret makes the Secret called NAME, unless the account has a token
// already: after a rotation that is in a Secret of another name, and one called
// NAME would bring the old token back.
func (r *tokenRun) ensureSecret(ctx context.Context) error {
	rotation, err := readRotation(ctx, r.client, r.Namespace, r.Name)
	if err != nil {
		return err
	}
	if token := rotation.Token(); token != nil {
		r.result.Secret = token
		r.result.Touched = append(r.result.Touched, Touched{Kind: "secret", Namespace: r.Namespace, Name: token.Name, Outcome: apply.Unchanged})
		return nil
	}
	wanted := &corev1.Secret{
		ObjectMeta: r.meta(map[string]string{corev1.ServiceAccountNameKey: r.Name}),
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	done, err := ensure(ctx, r.client, wanted, func(present *corev1.Secret) error {
		if present.Type != wanted.Type || present.Annotations[corev1.ServiceAccountNameKey] != r.Name {
			return r.foreign("Secret", "is no token of that ServiceAccount")
		}
		return nil
	})
	if err == nil {
		record(r, "Secret", done)
		r.result.Secret = done.Now
	}
	return err
}

// record notes what a step did, and how to take back what it created.
func record[T any, P apply.Object[T]](r *tokenRun, kind string, done ensured[T, P]) {
	r.result.Touched = append(r.result.Touched,
		Touched{Kind: strings.ToLower(kind), Namespace: r.Namespace, Name: r.Name, Outcome: done.Outcome})
	if done.Outcome == apply.Created {
		r.undo.last(fmt.Sprintf("delete %s %q", kind, r.Name), deleteExactly(r.client, done.Now))
	}
}

func (r *tokenRun) foreign(kind, why string) error {
	return &refusal.Refusal{
		What: r.what(),
		Why:  fmt.Sprintf("%s %q exists and %s", kind, r.Name, why),
		Next: "choose another token name",
	}
}
