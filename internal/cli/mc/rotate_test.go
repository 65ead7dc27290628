package mc

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
)

// rotation is a member that is played: it beats with whatever token its Secret
// holds, as the member controller does.
type rotation struct {
	leader, member string // Namespaces
	first          []byte // the token before
	access         *rest.Config
}

func newRotation(t *testing.T, c client.WithWatch) *rotation {
	t.Helper()
	_, hub := cluster(t)
	r := &rotation{leader: leads(t, c), member: namespace(t, c, "member"), access: hub.RESTConfig()}
	create(t, c, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.leader, Name: v1alpha1.MemberClusterRole},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"multicluster.crd.antrea.io"}, Resources: []string{"memberclusterannounces"},
			Verbs: []string{"get", "update"}}},
	})
	announced(t, c, r.leader, "east")
	token, err := readRotation(t.Context(), c, r.leader, "east-token")
	if err != nil {
		t.Fatal(err)
	}
	r.first = token.Token().Data["token"]
	opts := eastJoins(t, c)
	opts.Namespace, opts.LeaderNamespace, opts.Token = r.member, r.leader, token.Token()
	t.Cleanup(func() { removeSets(t, c, r.member) })
	if _, err := Join(t.Context(), c, opts); err != nil {
		t.Fatal(err)
	}
	start(t, func(ctx context.Context) error { return r.beat(ctx, c) })
	return r
}

func (r *rotation) options(c client.Client) RotateTokenOptions {
	return RotateTokenOptions{Namespace: r.leader, Name: "east-token", Wait: testTime,
		Member: &MemberSide{Client: c, Context: "east", Namespace: r.member}}
}

func (r *rotation) beat(ctx context.Context, c client.Client) error {
	return until(ctx, time.Hour, func(ctx context.Context) (bool, error) {
		var secret corev1.Secret
		if err := c.Get(ctx, client.ObjectKey{Namespace: r.member, Name: "east-token"}, &secret); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		config := rest.AnonymousClientConfig(r.access)
		config.BearerToken = string(secret.Data["token"])
		as, err := client.New(config, client.Options{Scheme: scheme.New(), Mapper: c.RESTMapper()})
		if err != nil {
			return false, err
		}
		var announce v1alpha1.MemberClusterAnnounce
		if err := as.Get(ctx, client.ObjectKey{Namespace: r.leader, Name: "member-announce-from-east"}, &announce); err != nil {
			return false, nil // cut off, or stopping
		}
		metav1.SetMetaDataAnnotation(&announce.ObjectMeta, v1alpha1.AnnotationTouch, time.Now().Format(time.RFC3339Nano))
		if err := as.Update(ctx, &announce); err != nil && !apierrors.IsConflict(err) {
			return false, nil
		}
		return false, nil
	})
}

// ended: one token is left, it is another one, and the member has it.
func (r *rotation) ended(t *testing.T, c client.Client) {
	t.Helper()
	now, err := readRotation(t.Context(), c, r.leader, "east-token")
	if err != nil {
		t.Fatal(err)
	}
	if now.New != nil || len(now.Old) != 1 {
		t.Fatalf("a new token: %v, others: %d", now.New != nil, len(now.Old))
	}
	var member corev1.Secret
	get(t, c, r.member, "east-token", &member)
	same(t, now.Old[0].Data, member.Data)
	if string(member.Data["token"]) == string(r.first) {
		t.Error("the token is the same as before")
	}
	removeSets(t, c, r.member)
}

// A token that nobody may delete afterwards makes a rotation worth nothing.
func TestRotateTokenRefusesWhatItCouldNotEnd(t *testing.T) {
	c, _ := cluster(t)
	ns := leads(t, c)
	create(t, c, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "by-hand", Annotations: map[string]string{corev1.ServiceAccountNameKey: "east-token"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	})
	_, err := RotateToken(t.Context(), c, RotateTokenOptions{Namespace: ns, Name: "east-token"})
	wantError(t, err, exit.Refused, `Secret "by-hand"`, "was not made by this command")
}

// A member whose Secret somebody else keeps gets its token from a file.
func TestRotateTokenLeavesForeignSecretsAlone(t *testing.T) {
	c, _ := cluster(t)
	r := newRotation(t, c)
	var place corev1.Secret
	get(t, c, r.member, "east-token", &place)
	delete(place.Annotations, v1alpha1.AnnotationCreatedByCLI)
	if err := c.Update(t.Context(), &place); err != nil {
		t.Fatal(err)
	}
	_, err := RotateToken(t.Context(), c, r.options(c))
	wantError(t, err, exit.Refused, `Secret "east-token" of the member`, "-o")
	now, err := readRotation(t.Context(), c, r.leader, "east-token")
	if err != nil || now.New != nil {
		t.Errorf("a token was made all the same: %v", err)
	}
	removeSets(t, c, r.member)
}
