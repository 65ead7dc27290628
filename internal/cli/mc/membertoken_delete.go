package mc

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// DeleteMemberTokenOptions name the credential of one member.
type DeleteMemberTokenOptions struct {
	// Namespace is the common area.
	Namespace string
	Name      string
}

// DeleteMemberTokenResult says what DeleteMemberToken did.
type DeleteMemberTokenResult struct {
	Touched []Touched
	// CutOff is the ID of a member that had this credential and has not left;
	// "" when there is none.
	CutOff string
}

// DeleteMemberToken deletes the Secret, the RoleBinding and the ServiceAccount
// of a member token, as far as the command line made them.
func DeleteMemberToken(ctx context.Context, c client.Client, opts DeleteMemberTokenOptions) (DeleteMemberTokenResult, error) {
	what := fmt.Sprintf("cannot delete member token %q in Namespace %q", opts.Name, opts.Namespace)
	meta := metav1.ObjectMeta{Namespace: opts.Namespace, Name: opts.Name}
	account := &corev1.ServiceAccount{ObjectMeta: meta}
	var result DeleteMemberTokenResult
	credentials, err := opts.credentials(ctx, c, account)
	if err != nil {
		return result, explain(what, err)
	}
	for _, credential := range credentials {
		outcome, err := deleteOurs(ctx, c, credential.object)
		if err != nil {
			return result, explain(what, err)
		}
		result.Touched = append(result.Touched, Touched{Kind: credential.kind, Namespace: opts.Namespace, Name: credential.object.GetName(), Outcome: outcome})
	}
	cutOff, err := stillAnnounced(ctx, c, account)
	result.CutOff = cutOff
	return result, explain(what, err)
}

type credential struct {
	kind   string
	object client.Object
}

// credentials are the objects of a member token. Rotations leave the token in a
// Secret of another name.
func (o DeleteMemberTokenOptions) credentials(ctx context.Context, c client.Client, account *corev1.ServiceAccount) ([]credential, error) {
	rotation, err := readRotation(ctx, c, o.Namespace, o.Name)
	if err != nil {
		return nil, err
	}
	secrets := rotation.Old
	if rotation.New != nil {
		secrets = append(secrets, rotation.New)
	}
	meta := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}
	if len(secrets) == 0 {
		secrets = []*corev1.Secret{{ObjectMeta: meta}}
	}
	var all []credential
	for _, secret := range secrets {
		all = append(all, credential{"secret", secret})
	}
	return append(all, credential{"rolebinding", &rbacv1.RoleBinding{ObjectMeta: meta}}, credential{"serviceaccount", account}), nil
}

// deleteOurs reads the object into itself and deletes it if the command line
// made it.
func deleteOurs(ctx context.Context, c client.Client, object client.Object) (Outcome, error) {
	err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err):
		return Missing, nil
	case err != nil:
		return "", err
	case object.GetAnnotations()[v1alpha1.AnnotationCreatedByCLI] == "":
		return Kept, nil
	default:
		return apply.Deleted, deleteByUID(ctx, c, object, object.GetUID())
	}
}

// stillAnnounced returns the ID an account was bound to, if a member has it.
func stillAnnounced(ctx context.Context, c client.Client, account *corev1.ServiceAccount) (string, error) {
	id := account.Annotations[v1alpha1.AnnotationClusterID]
	if id == "" {
		return "", nil
	}
	announce, err := find[v1alpha1.MemberClusterAnnounce](ctx, c, client.ObjectKey{Namespace: account.Namespace, Name: identity.AnnounceName(id)})
	if err != nil || announce == nil {
		return "", err
	}
	return id, nil
}
