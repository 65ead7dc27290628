package mc

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	manifests "github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/role"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/leader"
	"github.com/lockstep-dev/lockstep/internal/member"
)

// world is two clusters with their controllers: "hub" leads and can take part,
// "east" can take part.
type world struct {
	lab       *lab.Lab
	hub, east place
}

// place is one cluster as an administrator reaches it.
type place struct {
	client.Client
	server string
	// stop ends the member controller.
	stop func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{lab: labtest.Start(t, labtest.Options{Clusters: []string{"hub", "east"}})}
	w.hub, w.east = w.open(t, "hub"), w.open(t, "east")
	return w
}

// open installs what a cluster needs and runs its controllers in this process,
// ten times as fast.
func (w *world) open(t *testing.T, name string) place {
	t.Helper()
	config := labtest.Cluster(t, w.lab, name).RESTConfig()
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	options := func(of, namespace string) role.Options {
		return role.Options{Name: of, Namespace: namespace, IntervalScale: 0.1, MetricsAddress: "0", Registry: prometheus.NewRegistry(), Log: logr.Discard()}
	}
	if name == "hub" {
		applyRole(t, c, manifests.Leader)
		start(t, func(ctx context.Context) error {
			return leader.Run(ctx, config, leader.Options{Options: options("leader", v1alpha1.DefaultLeaderNamespace)})
		})
	}
	applyRole(t, c, manifests.Member)
	stop := start(t, func(ctx context.Context) error {
		return member.Run(ctx, config, member.Options{Options: options("member", v1alpha1.DefaultMemberNamespace), AllowLoopback: true})
	})
	return place{Client: c, server: config.Host, stop: stop}
}

// applyRole applies the manifests of a role; its Deployment is this process.
func applyRole(t *testing.T, c client.Client, r manifests.Role) {
	t.Helper()
	objects, err := manifests.Render(r, manifests.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if slices.Contains([]string{"Deployment", "PodDisruptionBudget", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}, object.GetKind()) {
			continue
		}
		if err := c.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		if object.GetKind() == "CustomResourceDefinition" {
			awaitEstablished(t, c, object.GetName())
		}
	}
}

// start runs a controller until the test ends or stop is called.
func start(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("a controller ended: %v", err)
		}
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// joinOptions are those of a member in this world.
func (w *world) joinOptions(id string, token *corev1.Secret) JoinOptions {
	return JoinOptions{
		Namespace: v1alpha1.DefaultMemberNamespace, ClusterSet: "fleet", ClusterID: id,
		LeaderClusterID: "hub", LeaderNamespace: v1alpha1.DefaultLeaderNamespace, LeaderAPIServer: w.hub.server, AllowLoopback: true,
		Token: token, Wait: testTime,
	}
}

// invited begins the ClusterSet in hub, and is what east joins it with.
func (w *world) invited(t *testing.T) JoinOptions {
	t.Helper()
	common := v1alpha1.DefaultLeaderNamespace
	if _, err := Init(t.Context(), w.hub, InitOptions{Namespace: common, ClusterSet: "fleet", ClusterID: "hub", Wait: testTime}); err != nil {
		t.Fatal(err)
	}
	token, err := CreateMemberToken(t.Context(), w.hub, eastToken(common))
	if err != nil {
		t.Fatal(err)
	}
	return w.joinOptions("east", token.Secret)
}

// TestMembership is the life of a membership, with real controllers on both
// sides.
func TestMembership(t *testing.T) {
	w := newWorld(t)
	common := v1alpha1.DefaultLeaderNamespace
	east := w.invited(t)

	t.Run("WK_55 what cannot work leaves nothing behind", func(t *testing.T) { w.failures(t, east) })
	t.Run("join", func(t *testing.T) {
		if _, err := Join(t.Context(), w.east, east); err != nil {
			t.Fatal(err)
		}
		get(t, w.hub, common, "member-announce-from-east", &v1alpha1.MemberClusterAnnounce{})
	})
	t.Run("WK_65 join again", func(t *testing.T) {
		result, err := Join(t.Context(), w.east, east)
		if err != nil {
			t.Fatal(err)
		}
		same(t, []string{"secret/east-token unchanged", "clusterset/fleet unchanged"}, lines(result.Touched))
	})
	t.Run("a worse token is taken back", func(t *testing.T) {
		worse := east
		worse.Token = withToken(east.Token, "invented")
		_, err := Join(t.Context(), w.east, worse)
		wantError(t, err, exit.Failed, "does not accept the token")
		result, err := Join(t.Context(), w.east, east)
		if err != nil {
			t.Fatal(err)
		}
		same(t, []string{"secret/east-token unchanged", "clusterset/fleet unchanged"}, lines(result.Touched))
	})
	t.Run("the ID is in use", func(t *testing.T) {
		_, err := Join(t.Context(), w.hub, east)
		wantError(t, err, exit.Refused, `"east" is in use`)
		absent(t, w.hub, east.Namespace, "fleet", &v1alpha2.ClusterSet{})
		get(t, w.hub, common, "member-announce-from-east", &v1alpha1.MemberClusterAnnounce{})
	})
	t.Run("the token is another member's", func(t *testing.T) {
		north := w.joinOptions("north", east.Token)
		_, err := Join(t.Context(), w.hub, north)
		wantError(t, err, exit.Refused, `member "east" is in the common area with the token of Secret "east-token"`, "create membertoken north-token --cluster-id north")
		absent(t, w.hub, north.Namespace, "fleet", &v1alpha2.ClusterSet{})
		absent(t, w.hub, north.Namespace, "east-token", &corev1.Secret{})
	})
	t.Run("status", func(t *testing.T) {
		out, _, err := command(t, nil, "status", "--kubeconfig", w.lab.Kubeconfig(), "--contexts", "hub,east", "--exit-code")
		if err != nil || !strings.Contains(out, "1/1") || strings.Contains(out, "PROBLEMS") {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("preflight", func(t *testing.T) { w.checks(t) })
	t.Run("rotate-token", func(t *testing.T) { east.Token = w.rotates(t, east.Token) })
	t.Run("export and unexport", func(t *testing.T) { w.exports(t) })
	t.Run("leave", func(t *testing.T) {
		result, err := Leave(t.Context(), w.east, LeaveOptions{Namespace: east.Namespace, ClusterSet: "fleet", Wait: testTime})
		if err != nil {
			t.Fatal(err)
		}
		same(t, []string{"clusterset/fleet deleted", "secret/east-token deleted"}, lines(result.Touched))
		gone(t, w.hub, &v1alpha1.MemberClusterAnnounce{}, common, "member-announce-from-east")
	})
	t.Run("WK_8 leave by force", func(t *testing.T) { w.force(t, east) })
}

// failures are joins that cannot come about, each for another reason.
func (w *world) failures(t *testing.T, good JoinOptions) {
	for name, bad := range map[string]struct {
		change func(*JoinOptions)
		code   int
		words  []string
	}{
		"nobody listens":       {func(o *JoinOptions) { o.LeaderAPIServer = "https://127.0.0.1:1" }, exit.Waiting, []string{"127.0.0.1:1", "refused"}},
		"another cluster's CA": {func(o *JoinOptions) { o.Token = tokenSecret("east-token", string(good.Token.Data["token"])) }, exit.Waiting, []string{"certificate of the leader", "signed by an authority that is not trusted here", "mc create membertoken"}},
		"a token nobody made":  {func(o *JoinOptions) { o.Token = withToken(good.Token, "invented") }, exit.Failed, []string{"does not accept the token"}},
		"a Namespace nobody has": {func(o *JoinOptions) { o.LeaderNamespace = "nowhere"; o.Token = withToken(good.Token, "invented") },
			exit.Failed, []string{"token"}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := good
			bad.change(&opts)
			if bad.code == exit.Waiting {
				opts.Wait = 4 * time.Second
			}
			_, err := Join(t.Context(), w.east, opts)
			wantError(t, err, bad.code, bad.words...)
			absent(t, w.east, opts.Namespace, "fleet", &v1alpha2.ClusterSet{})
			absent(t, w.east, opts.Namespace, "east-token", &corev1.Secret{})
		})
	}
}

func withToken(secret *corev1.Secret, token string) *corev1.Secret {
	changed := secret.DeepCopy()
	changed.Data["token"] = []byte(token)
	return changed
}

// force leaves while the member controller is away.
func (w *world) force(t *testing.T, opts JoinOptions) {
	if _, err := Join(t.Context(), w.east, opts); err != nil {
		t.Fatal(err)
	}
	w.east.stop()
	leave := LeaveOptions{Namespace: opts.Namespace, ClusterSet: "fleet", Wait: time.Second}
	_, err := Leave(t.Context(), w.east, leave)
	wantError(t, err, exit.Waiting, "--force")
	leave.Force = true
	result, err := Leave(t.Context(), w.east, leave)
	if err != nil {
		t.Fatal(err)
	}
	same(t, apply.Deleted, result.Touched[0].Outcome)
	if len(result.Left) != 1 || !strings.Contains(result.Left[0], "member-announce-from-east") {
		t.Errorf("left is %q", result.Left)
	}
}

func gone(t *testing.T, c client.Client, object client.Object, namespace, name string) {
	t.Helper()
	err := until(t.Context(), testTime, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("%T %q is still there: %v", object, name, err)
	}
}
