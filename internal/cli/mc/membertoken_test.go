package mc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/joinfile"
)

func eastToken(namespace string) MemberTokenOptions {
	return MemberTokenOptions{Namespace: namespace, Name: "east-token", ClusterID: "east", Wait: testTime}
}

// covers: CLI-5.2
func TestCreateMemberTokenMakesABoundCredential(t *testing.T) {
	c, _ := cluster(t)
	ns := namespace(t, c, "token")
	var manifest strings.Builder
	opts := eastToken(ns)
	opts.Manifest = ToWriter(&manifest)
	result, err := CreateMemberToken(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{"serviceaccount/east-token created", "rolebinding/east-token created", "secret/east-token created"}, lines(result.Touched))

	var account corev1.ServiceAccount
	get(t, c, ns, "east-token", &account)
	same(t, map[string]string{v1alpha1.AnnotationClusterID: "east", v1alpha1.AnnotationCreatedByCLI: "true"}, account.Annotations)

	var binding rbacv1.RoleBinding
	get(t, c, ns, "east-token", &binding)
	same(t, rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "antrea-mc-member-cluster-role"}, binding.RoleRef)
	same(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "east-token", Namespace: ns}}, binding.Subjects)

	secret, err := joinfile.ParseToken([]byte(manifest.String()))
	if err != nil {
		t.Fatal(err)
	}
	same(t, corev1.SecretTypeOpaque, secret.Type)
	same(t, result.Secret.Data, secret.Data)
}

func TestWK_65_CreateMemberTokenIsRepeatable(t *testing.T) {
	c, _ := cluster(t)
	ns := namespace(t, c, "token")
	first, err := CreateMemberToken(t.Context(), c, eastToken(ns))
	if err != nil {
		t.Fatal(err)
	}
	second, err := CreateMemberToken(t.Context(), c, eastToken(ns))
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{"serviceaccount/east-token unchanged", "rolebinding/east-token unchanged", "secret/east-token unchanged"}, lines(second.Touched))
	same(t, first.Secret.Data, second.Secret.Data)
}

func TestCreateMemberTokenBindsAnew(t *testing.T) {
	c, _ := cluster(t)
	ns := namespace(t, c, "token")
	if _, err := CreateMemberToken(t.Context(), c, eastToken(ns)); err != nil {
		t.Fatal(err)
	}
	opts := eastToken(ns)
	opts.ClusterID = "orient"
	result, err := CreateMemberToken(t.Context(), c, opts)
	if err != nil || result.Rebound != "east" {
		t.Fatalf("bound anew from %q, %v", result.Rebound, err)
	}
	var account corev1.ServiceAccount
	get(t, c, ns, "east-token", &account)
	same(t, "orient", account.Annotations[v1alpha1.AnnotationClusterID])
}

func TestCreateMemberTokenRefuses(t *testing.T) {
	c, _ := cluster(t)
	ns := namespace(t, c, "token")
	create(t, c,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "old", Annotations: map[string]string{v1alpha1.AnnotationClusterID: "west"}}},
		&v1alpha1.MemberClusterAnnounce{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "member-announce-from-north-1"}, ClusterID: "north-1"},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "taken"}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "bound"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}},
	)
	for name, bad := range map[string]struct {
		token, id string
		words     []string
	}{
		"an ID that is bound":             {"t", "west", []string{`"old"`, `"west"`, "UPG-CHK-2"}},
		"an ID with a suffix to another":  {"t", "west-2", []string{`"west-2"`, `"west"`, "ADM-MCA-11"}},
		"an ID that another has suffixed": {"t", "north", []string{`"north-1"`, "member-announce-from-north-1"}},
		"a dot":                           {"t", "east.eu", []string{"dot"}},
		"64 characters":                   {"t", strings.Repeat("e", 64), []string{"63"}},
		"upper case":                      {"t", "East", []string{"East"}},
		"a name that is none":             {"T_1", "east", []string{"T_1"}},
		"the leader's own account":        {"antrea-mc-controller", "east", []string{"antrea-mc-controller"}},
		"the account of every Pod":        {"default", "east", []string{"default"}},
		"a Secret of somebody else":       {"taken", "east", []string{`Secret "taken"`}},
		"a RoleBinding of somebody else":  {"bound", "east", []string{`RoleBinding "bound"`}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := MemberTokenOptions{Namespace: ns, Name: bad.token, ClusterID: bad.id}
			_, err := CreateMemberToken(t.Context(), c, opts)
			wantError(t, err, exit.Refused, bad.words...)
			err = c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: bad.token}, &corev1.ServiceAccount{})
			if bad.token != "default" && !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) {
				t.Errorf("a ServiceAccount was left behind: %v", err)
			}
		})
	}
}

func TestCreateMemberTokenNeedsTheNamespace(t *testing.T) {
	c, _ := cluster(t)
	_, err := CreateMemberToken(t.Context(), c, eastToken("nowhere"))
	wantError(t, err, exit.Failed, `no Namespace "nowhere"`, "lockstep mc deploy leadercluster -n nowhere", "lockstep mc init -n nowhere")
}

var errPlanted = errors.New("planted")

// failing wraps a client whose creates fail for one kind.
func failing(c client.WithWatch, kind client.Object) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if sameType(o, kind) {
				return errPlanted
			}
			return c.Create(ctx, o, options...)
		},
	})
}

func TestCreateMemberTokenTakesBackWhatItMade(t *testing.T) {
	c, _ := cluster(t)
	for name, broken := range map[string]client.Object{"the RoleBinding fails": &rbacv1.RoleBinding{}, "the Secret fails": &corev1.Secret{}} {
		t.Run(name, func(t *testing.T) {
			ns := namespace(t, c, "token")
			_, err := CreateMemberToken(t.Context(), failing(c, broken), eastToken(ns))
			if !errors.Is(err, errPlanted) {
				t.Fatalf("error is %v", err)
			}
			for _, kind := range []client.Object{&corev1.ServiceAccount{}, &rbacv1.RoleBinding{}, &corev1.Secret{}} {
				absent(t, c, ns, "east-token", kind)
			}
		})
	}
}

func TestCreateMemberTokenGivesBackTheFormerID(t *testing.T) {
	c, _ := cluster(t)
	ns := namespace(t, c, "token")
	create(t, c, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "east-token", Annotations: map[string]string{v1alpha1.AnnotationClusterID: "orient"}}})
	if _, err := CreateMemberToken(t.Context(), failing(c, &corev1.Secret{}), eastToken(ns)); !errors.Is(err, errPlanted) {
		t.Fatalf("error is %v", err)
	}
	var account corev1.ServiceAccount
	get(t, c, ns, "east-token", &account)
	same(t, map[string]string{v1alpha1.AnnotationClusterID: "orient"}, account.Annotations)
	absent(t, c, ns, "east-token", &rbacv1.RoleBinding{})
}

func TestCreateMemberTokenKeepsItWhenTheFileFails(t *testing.T) {
	c, _ := cluster(t)
	ns := namespace(t, c, "token")
	opts := eastToken(ns)
	opts.Manifest = func([]byte) error { return errPlanted }
	_, err := CreateMemberToken(t.Context(), c, opts)
	wantError(t, err, exit.Failed, "the token stays")
	get(t, c, ns, "east-token", &corev1.Secret{})
}

func TestCreateMemberTokenDoesNotWaitForever(t *testing.T) {
	c, _ := cluster(t)
	ns := namespace(t, c, "token")
	opts := eastToken(ns)
	opts.Wait = time.Nanosecond
	// The very first look may find the token; then there is nothing to see here.
	if _, err := CreateMemberToken(t.Context(), c, opts); err != nil {
		wantError(t, err, exit.Waiting, "no token", "kube-controller-manager")
		absent(t, c, ns, "east-token", &corev1.ServiceAccount{})
	}
}
