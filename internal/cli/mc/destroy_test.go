package mc

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// leads makes a ClusterSet with one member token, and beside them an object
// that the command line made for another purpose.
func leads(t *testing.T, c client.Client) string {
	t.Helper()
	ns := namespace(t, c, "area")
	if _, err := Init(t.Context(), c, InitOptions{Namespace: ns, ClusterSet: "fleet", ClusterID: "hub"}); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateMemberToken(t.Context(), c, eastToken(ns)); err != nil {
		t.Fatal(err)
	}
	create(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "other", Annotations: map[string]string{v1alpha1.AnnotationCreatedByCLI: "true"}}})
	return ns
}

func announced(t *testing.T, c client.Client, namespace, id string) {
	t.Helper()
	create(t, c, &v1alpha1.MemberClusterAnnounce{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "member-announce-from-" + id}, ClusterID: id})
}

func TestWK_16_DestroyRefusesWhileThereAreMembers(t *testing.T) {
	c, _ := cluster(t)
	ns := leads(t, c)
	announced(t, c, ns, "east")
	_, err := Destroy(t.Context(), c, DestroyOptions{Namespace: ns, ClusterSet: "fleet"})
	wantError(t, err, exit.Refused, `"east"`, "ADM-CS-4", "mc leave")
	get(t, c, ns, "fleet", &v1alpha2.ClusterSet{})
	get(t, c, ns, "east-token", &corev1.Secret{})
}

func TestDestroyDeletesTheTokensOfTheClusterSet(t *testing.T) {
	c, _ := cluster(t)
	ns := leads(t, c)
	opts := DestroyOptions{Namespace: ns, ClusterSet: "fleet"}
	_, err := Destroy(t.Context(), c, DestroyOptions{Namespace: ns, ClusterSet: "navy"})
	wantError(t, err, exit.Refused, `"fleet"`, `"navy"`)

	touched, err := Destroy(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{"clusterset/fleet deleted", "secret/east-token deleted", "rolebinding/east-token deleted", "serviceaccount/east-token deleted"}, lines(touched))
	get(t, c, ns, "other", &corev1.Secret{})

	again, err := Destroy(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{"clusterset/fleet not found"}, lines(again))
}

// What is told is what has happened, not what was tried.
func TestDestroyTellsOnlyWhatIsDeleted(t *testing.T) {
	c, _ := cluster(t)
	ns := leads(t, c)
	refusing := interceptor.NewClient(c, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if sameType(o, &rbacv1.RoleBinding{}) {
				return errPlanted
			}
			return c.Delete(ctx, o, opts...)
		},
	})
	touched, err := Destroy(t.Context(), refusing, DestroyOptions{Namespace: ns, ClusterSet: "fleet"})
	wantError(t, err, exit.Failed, "planted")
	same(t, []string{"clusterset/fleet deleted", "secret/east-token deleted"}, lines(touched))
}

func TestDestroyRefusesAMembership(t *testing.T) {
	c, _ := cluster(t)
	member := eastJoins(t, c)
	if _, err := Join(t.Context(), c, member); err != nil {
		t.Fatal(err)
	}
	_, err := Destroy(t.Context(), c, DestroyOptions{Namespace: member.Namespace, ClusterSet: "fleet"})
	wantError(t, err, exit.Refused, "mc leave --clusterset fleet")
}

// covers: CLI-5.3
func TestDeleteMemberToken(t *testing.T) {
	c, _ := cluster(t)
	ns := leads(t, c)
	announced(t, c, ns, "east")
	var binding rbacv1.RoleBinding
	get(t, c, ns, "east-token", &binding)
	binding.Annotations = nil // somebody else's now
	if err := c.Update(t.Context(), &binding); err != nil {
		t.Fatal(err)
	}
	opts := DeleteMemberTokenOptions{Namespace: ns, Name: "east-token"}
	result, err := DeleteMemberToken(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{"secret/east-token deleted", "rolebinding/east-token kept", "serviceaccount/east-token deleted"}, lines(result.Touched))
	same(t, "east", result.CutOff)

	again, err := DeleteMemberToken(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{"secret/east-token not found", "rolebinding/east-token kept", "serviceaccount/east-token not found"}, lines(again.Touched))
	same(t, "", again.CutOff)
}
