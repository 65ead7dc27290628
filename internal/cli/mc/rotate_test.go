package mc

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/joinfile"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// rotation is a member that is played: it beats with whatever token its Secret
// holds, as the member controller does.
type rotation struct {
	leader, member string // Namespaces
	first          []byte // the token before
	access         *rest.Config
	tells          bool // with which token it beats, as members of ours do
	keeps          bool // its first connection, as upstream's exporters do
}

func newRotation(t *testing.T, c client.WithWatch, tells bool) *rotation {
	t.Helper()
	return begin(t, c, &rotation{tells: tells})
}

func begin(t *testing.T, c client.WithWatch, r *rotation) *rotation {
	t.Helper()
	_, hub := cluster(t)
	r.leader, r.member, r.access = leads(t, c), namespace(t, c, "member"), hub.RESTConfig()
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
		bearer := secret.Data["token"]
		if r.keeps {
			bearer = r.first
		}
		as, err := r.as(c, bearer)
		if err != nil {
			return false, err
		}
		var announce v1alpha1.MemberClusterAnnounce
		if err := as.Get(ctx, client.ObjectKey{Namespace: r.leader, Name: "member-announce-from-east"}, &announce); err != nil {
			return false, nil // cut off, or stopping
		}
		metav1.SetMetaDataAnnotation(&announce.ObjectMeta, v1alpha1.AnnotationTouch, time.Now().Format(time.RFC3339Nano))
		if r.tells {
			told := clusterset.Credential(clusterset.Token(secret.Data["token"]))
			metav1.SetMetaDataAnnotation(&announce.ObjectMeta, v1alpha1.AnnotationCredential, told)
		}
		if err := as.Update(ctx, &announce); err != nil && !apierrors.IsConflict(err) {
			return false, nil
		}
		return false, nil
	})
}

// as is a client of whoever bears the token.
func (r *rotation) as(c client.Client, token []byte) (client.Client, error) {
	config := rest.AnonymousClientConfig(r.access)
	config.BearerToken = string(token)
	return client.New(config, client.Options{Scheme: scheme.New(), Mapper: c.RESTMapper()})
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

// Somebody who tries the new token by hand is not the member: that its Secret was
// used, while the member goes on beating with the old token, proves nothing.
func TestRotateTokenKeepsTheOldTokenWithoutProof(t *testing.T) {
	c, _ := cluster(t)
	for name, tc := range map[string]struct {
		tells bool
		wait  time.Duration
		words []string
	}{
		"it tells of the old token": {true, time.Second, []string{`"east" still announces itself with another`, "every old one is valid", "repeat the command"}},
		"it does not tell":          {false, testTime, []string{`"east" does not tell which token it uses`, "every old one is valid", "delete secret east-token"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRotation(t, c, tc.tells)
			opts := r.options(c)
			opts.Member, opts.Wait = nil, tc.wait
			opts.Manifest = func(manifest []byte) error {
				token, err := joinfile.ParseToken(manifest)
				if err != nil {
					return err
				}
				as, err := r.as(c, token.Data["token"])
				if err != nil {
					return err
				}
				return as.Get(t.Context(), client.ObjectKey{Namespace: r.leader, Name: "member-announce-from-east"}, &v1alpha1.MemberClusterAnnounce{})
			}
			_, err := RotateToken(t.Context(), c, opts)
			wantError(t, err, exit.Waiting, tc.words...)
			var old corev1.Secret
			get(t, c, r.leader, "east-token", &old)
			same(t, string(r.first), string(old.Data["token"]))
			removeSets(t, c, r.member)
		})
	}
}

// An upstream member that has been given its new token goes on with its first
// connection until it is restarted, and by then somebody has looked at the token.
//
// covers: WK-2, WK-4
func TestRotateTokenWaitsForTheProcessesOfAMemberThatDoesNotTell(t *testing.T) {
	c, _ := cluster(t)
	r := begin(t, c, &rotation{keeps: true})
	labels := map[string]string{"app": "antrea-mc-controller"}
	controller := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.member, Name: "antrea-mc-controller"},
		Spec: appsv1.DeploymentSpec{
			Paused: true, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c", Args: []string{"member"}}}}},
		},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.member, Name: "antrea-mc-controller-1", Labels: labels},
		Spec: corev1.PodSpec{NodeName: "elsewhere", Containers: []corev1.Container{{Name: "c", Image: "c"}}}}
	for _, tc := range []struct {
		name    string
		prepare func()
		words   []string
	}{
		{"nobody knows its processes", func() {}, []string{"no process of its controller is known", "see that cluster \"east\" has the new token", "delete secret east-token"}},
		{"they are old", func() {
			create(t, c, controller, pod)
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
				Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-time.Hour))}}}}
			if err := c.Status().Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}, []string{"1 of 1 processes of its controller run since before the new token came", "rollout restart deployment antrea-mc-controller"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.prepare()
			opts := r.options(c)
			opts.Wait = 3 * time.Second
			opts.Progress = func(string) { // of the wait: somebody looks at the token
				var place corev1.Secret
				get(t, c, r.member, "east-token", &place)
				if as, err := r.as(c, place.Data["token"]); err == nil {
					_ = as.Get(t.Context(), client.ObjectKey{Namespace: r.leader, Name: "member-announce-from-east"}, &v1alpha1.MemberClusterAnnounce{})
				}
			}
			_, err := RotateToken(t.Context(), c, opts)
			wantError(t, err, exit.Waiting, append(tc.words, "every old one is valid")...)
			var old corev1.Secret
			get(t, c, r.leader, "east-token", &old)
			same(t, string(r.first), string(old.Data["token"]))
		})
	}
	removeSets(t, c, r.member)
}

// What is valid is told by what was deleted.
func TestAnInterruptedRotationTellsWhichTokensAreValid(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	deleted := Touched{Kind: "secret", Outcome: apply.Deleted}
	for words, touched := range map[string][]Touched{
		"every old one is valid too":      nil,
		"1 of 2 old ones are valid too":   {deleted},
		`Secret "new", and no old one is`: {deleted, deleted},
	} {
		r := rotateRun{rotation: clusterset.Rotation{Old: []*corev1.Secret{{}, {}}}}
		r.result = RotateTokenResult{Touched: touched, Secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "new"}}}
		wantError(t, r.explain(ctx, ctx.Err()), exit.Failed, words)
	}
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
	r := newRotation(t, c, false)
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

// A member that came by a token of another would be cut off by its rotation.
func TestRotateTokenCutsNobodyOff(t *testing.T) {
	c, _ := cluster(t)
	r := newRotation(t, c, true)
	create(t, c, &v1alpha1.MemberClusterAnnounce{ClusterID: "west", ObjectMeta: metav1.ObjectMeta{
		Namespace: r.leader, Name: "member-announce-from-west",
		Annotations: map[string]string{v1alpha1.AnnotationCredential: clusterset.Credential(clusterset.Token(r.first))}}})
	_, err := RotateToken(t.Context(), c, r.options(c))
	wantError(t, err, exit.Refused, `member "west" uses it as well`, `bound to "east"`, "create membertoken west-token --cluster-id west", "ADM-MCA-6")
	now, err := readRotation(t.Context(), c, r.leader, "east-token")
	if err != nil || now.New != nil || len(now.Old) != 1 {
		t.Errorf("a token was made or deleted all the same: %v", err)
	}
	removeSets(t, c, r.member)
}
