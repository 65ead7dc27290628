package mc

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// DestroyOptions name the ClusterSet to end, in its leader cluster.
type DestroyOptions struct {
	// Namespace is the common area.
	Namespace string
	// ClusterSet is the ClusterSet ID.
	ClusterSet string
}

// Destroy deletes the ClusterSet of a leader and then the credentials of its
// members. While there are members it is refused: their exports would stay in
// the common area, and they would be cut off (WK-16).
func Destroy(ctx context.Context, c client.Client, opts DestroyOptions) ([]Touched, error) {
	if err := needNamespace(ctx, c, opts.what(), opts.Namespace, "name the Namespace of the leader controller with -n"); err != nil {
		return nil, err
	}
	present, err := onlySet(ctx, c, opts.what(), opts.Namespace)
	if err != nil {
		return nil, err
	}
	if err := opts.refuse(ctx, c, present); err != nil {
		return nil, err
	}
	outcome := Missing
	if present != nil {
		outcome = apply.Deleted
		if err := deleteByUID(ctx, c, present, present.UID); err != nil {
			return nil, explain(opts.what(), err)
		}
	}
	touched := []Touched{{Kind: kindClusterSet, Namespace: opts.Namespace, Name: opts.ClusterSet, Outcome: outcome}}
	credentials, err := deleteCredentials(ctx, c, opts.Namespace)
	return append(touched, credentials...), explain(opts.what(), err)
}

func (o DestroyOptions) what() string {
	return fmt.Sprintf("cannot destroy ClusterSet %q in Namespace %q", o.ClusterSet, o.Namespace)
}

func (o DestroyOptions) refuse(ctx context.Context, c client.Client, present *v1alpha2.ClusterSet) error {
	switch {
	case present != nil && present.Name != o.ClusterSet:
		return &refusal.Refusal{What: o.what(), Next: "repeat the command with that name, or name another Namespace with -n",
			Why: fmt.Sprintf("the ClusterSet there is %q", present.Name)}
	case present != nil && isMember(present):
		return &refusal.Refusal{What: o.what(), Why: fmt.Sprintf("it is the membership of cluster %q, not the leader's own ClusterSet", present.Spec.ClusterID),
			Next: fmt.Sprintf("lockstep mc leave --clusterset %s -n %s", o.ClusterSet, o.Namespace)}
	}
	var announces v1alpha1.MemberClusterAnnounceList
	if err := c.List(ctx, &announces, client.InNamespace(o.Namespace)); err != nil {
		return explain(o.what(), err)
	}
	if len(announces.Items) == 0 {
		return nil
	}
	var ids []string
	for _, a := range announces.Items {
		ids = append(ids, fmt.Sprintf("%q", a.ClusterID))
	}
	return &refusal.Refusal{
		What: o.what(),
		Why:  "it has members: " + strings.Join(ids, ", "),
		Next: fmt.Sprintf("let each leave (lockstep mc leave); for one that is gone for good: kubectl -n %s delete memberclusterannounce member-announce-from-ID", o.Namespace),
		Rule: "ADM-CS-4",
	}
}

// deleteCredentials deletes the member tokens of the common area that the
// command line made, and nothing else that it made there.
func deleteCredentials(ctx context.Context, c client.Client, namespace string) ([]Touched, error) {
	var touched []Touched
	for _, credentials := range []struct {
		kind string
		list client.ObjectList
	}{
		{"secret", &corev1.SecretList{}},
		{"rolebinding", &rbacv1.RoleBindingList{}},
		{"serviceaccount", &corev1.ServiceAccountList{}},
	} {
		if err := c.List(ctx, credentials.list, client.InNamespace(namespace)); err != nil {
			return touched, err
		}
		err := apply.Each(credentials.list, func(object client.Object) error {
			if object.GetAnnotations()[v1alpha1.AnnotationCreatedByCLI] == "" || !isCredential(object) {
				return nil
			}
			if err := deleteByUID(ctx, c, object, object.GetUID()); err != nil {
				return err
			}
			touched = append(touched, Touched{Kind: credentials.kind, Namespace: namespace, Name: object.GetName(), Outcome: apply.Deleted})
			return nil
		})
		if err != nil {
			return touched, err
		}
	}
	return touched, nil
}

// isCredential tells whether an object is a part of a member token.
func isCredential(object client.Object) bool {
	switch o := object.(type) {
	case *corev1.Secret:
		return o.Type == corev1.SecretTypeServiceAccountToken
	case *rbacv1.RoleBinding:
		return o.RoleRef.Name == v1alpha1.MemberClusterRole
	case *corev1.ServiceAccount:
		return o.Annotations[v1alpha1.AnnotationClusterID] != ""
	default:
		return false
	}
}
