package admission_test

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/config"
)

// rights are attempts that no rule has to meet, because the member Role does not
// grant them.
func rights() []attempt {
	here := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: area, Name: name} }
	one := func(what, name string, do func(context.Context, client.Client) error) attempt {
		return attempt{what: what, by: east, answer: noRight, ways: []way{{name, func(ctx context.Context, c client.Client, _, _ client.Object) error { return do(ctx, c) }}}}
	}
	validating, _ := config.WebhookConfigurations(config.Leader, area)
	return []attempt{
		one("read the key of the webhooks", "get", func(ctx context.Context, c client.Client) error {
			return c.Get(ctx, client.ObjectKey{Namespace: area, Name: config.WebhookSecret}, &corev1.Secret{})
		}),
		one("read the tokens of others", "list", func(ctx context.Context, c client.Client) error {
			return c.List(ctx, &corev1.SecretList{}, client.InNamespace(area))
		}),
		one("a token of another account", "create", func(ctx context.Context, c client.Client) error {
			return c.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: here("member-west")}, &authenticationv1.TokenRequest{})
		}),
		one("a Secret that asks for a token", "create", func(ctx context.Context, c client.Client) error {
			s := &corev1.Secret{ObjectMeta: here("steal"), Type: corev1.SecretTypeServiceAccountToken}
			s.Annotations = map[string]string{corev1.ServiceAccountNameKey: "member-west"}
			return c.Create(ctx, s)
		}),
		one("bind its account to another cluster", "merge patch", func(ctx context.Context, c client.Client) error {
			before := &corev1.ServiceAccount{ObjectMeta: here("member-east")}
			after := before.DeepCopy()
			after.Annotations = map[string]string{v1alpha1.AnnotationClusterID: "west"}
			return c.Patch(ctx, after, client.MergeFrom(before))
		}),
		one("give the member Role to others", "create", func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, &rbacv1.RoleBinding{
				ObjectMeta: here("more"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: v1alpha1.MemberClusterRole},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:authenticated"}},
			})
		}),
		one("take the webhooks away", "delete", func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: validating}})
		}),
		one("stop the leader", "delete", func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(area))
		}),
		one("delete all exports at once", "delete of a collection", func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &v1alpha1.ResourceExport{}, client.InNamespace(area))
		}),
		one("change the ClusterSet", "delete", func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, &v1alpha2.ClusterSet{ObjectMeta: here(set)})
		}),
		one("an export in another Namespace", "create", func(ctx context.Context, c client.Client) error {
			e := serviceExport(east, "fresh")
			e.Namespace = "default"
			return c.Create(ctx, e)
		}),
	}
}
