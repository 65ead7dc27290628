package mc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// eastJoins are the options of a membership nobody waits for. What the test
// leaves behind is removed, for one cluster has one membership at a time.
func eastJoins(t *testing.T, c client.Client) JoinOptions {
	t.Helper()
	opts := JoinOptions{
		Namespace: namespace(t, c, "member"), ClusterSet: "fleet", ClusterID: "east",
		LeaderClusterID: "hub", LeaderNamespace: "common", LeaderAPIServer: "https://hub.example:6443",
		Token: tokenSecret("east-token", "one"),
	}
	t.Cleanup(func() { removeSets(t, c, opts.Namespace) })
	return opts
}

func tokenSecret(name, token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "common"},
		Data:       map[string][]byte{"ca.crt": []byte(testCA), "token": []byte(token), "namespace": []byte("common")},
	}
}

func removeSets(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var sets v1alpha2.ClusterSetList
	if err := c.List(ctx, &sets, client.InNamespace(namespace)); err != nil {
		t.Error(err)
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		set.Finalizers = nil
		if err := errors.Join(c.Update(ctx, set), c.Delete(ctx, set)); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	}
}

// covers: CLI-5.4
func TestJoinMakesTheMembersObjects(t *testing.T) {
	c, _ := cluster(t)
	opts := eastJoins(t, c)
	result, err := Join(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []string{"secret/east-token created", "clusterset/fleet created"}, lines(result.Touched))

	var set v1alpha2.ClusterSet
	get(t, c, opts.Namespace, "fleet", &set)
	same(t, v1alpha2.ClusterSetSpec{
		ClusterID: "east",
		Leaders:   []v1alpha2.LeaderCluster{{ClusterID: "hub", Server: "https://hub.example:6443", Secret: "east-token"}},
		Namespace: "common",
	}, set.Spec)

	var secret corev1.Secret
	get(t, c, opts.Namespace, "east-token", &secret)
	same(t, corev1.SecretTypeOpaque, secret.Type)
	same(t, opts.Token.Data, secret.Data)
	same(t, "true", secret.Annotations[v1alpha1.AnnotationCreatedByCLI])
}

func TestWK_65_JoinIsRepeatable(t *testing.T) {
	c, _ := cluster(t)
	opts := eastJoins(t, c)
	for _, step := range []struct {
		change func()
		want   []string
	}{
		{func() {}, []string{"secret/east-token created", "clusterset/fleet created"}},
		{func() {}, []string{"secret/east-token unchanged", "clusterset/fleet unchanged"}},
		{func() { opts.Token = tokenSecret("east-token", "two") }, []string{"secret/east-token configured", "clusterset/fleet unchanged"}},
		{func() { opts.LeaderAPIServer = "https://hub.example:443" }, []string{"secret/east-token unchanged", "clusterset/fleet configured"}},
		{func() { opts.Token = nil; opts.TokenSecretName = "east-token" }, []string{"clusterset/fleet unchanged"}},
	} {
		step.change()
		result, err := Join(t.Context(), c, opts)
		if err != nil {
			t.Fatal(err)
		}
		same(t, step.want, lines(result.Touched))
	}
}

func TestWK_55_JoinRefusesAnotherMembership(t *testing.T) {
	c, _ := cluster(t)
	opts := eastJoins(t, c)
	if _, err := Join(t.Context(), c, opts); err != nil {
		t.Fatal(err)
	}
	elsewhere := namespace(t, c, "member")
	for name, other := range map[string]struct {
		change func(*JoinOptions)
		words  []string
	}{
		"another ClusterSet": {func(o *JoinOptions) { o.ClusterSet = "navy" }, []string{`"fleet"`, `"navy"`, "mc leave"}},
		"another cluster ID": {func(o *JoinOptions) { o.ClusterID = "orient" }, []string{`"east"`, `"orient"`}},
		"another leader":     {func(o *JoinOptions) { o.LeaderClusterID = "centre" }, []string{`"hub"`, `"centre"`}},
		"another Namespace":  {func(o *JoinOptions) { o.Namespace = elsewhere }, []string{opts.Namespace, "leave there first"}},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := opts
			wrong.Token = tokenSecret("other-token", "other")
			other.change(&wrong)
			_, err := Join(t.Context(), c, wrong)
			wantError(t, err, exit.Refused, other.words...)
			absent(t, c, wrong.Namespace, "other-token", &corev1.Secret{})
		})
	}
}

func TestJoinRefusesTheLeadersNamespace(t *testing.T) {
	c, _ := cluster(t)
	opts := eastJoins(t, c)
	if _, err := Init(t.Context(), c, InitOptions{Namespace: opts.Namespace, ClusterSet: "fleet", ClusterID: "hub"}); err != nil {
		t.Fatal(err)
	}
	_, err := Join(t.Context(), c, opts)
	wantError(t, err, exit.Refused, "Namespace of the member controller")
}

func TestJoinRefusesTwoClusterSets(t *testing.T) {
	c, _ := cluster(t)
	opts := eastJoins(t, c)
	for _, name := range []string{"fleet", "navy"} {
		create(t, c, &v1alpha2.ClusterSet{ObjectMeta: metav1.ObjectMeta{Namespace: opts.Namespace, Name: name}, Spec: v1alpha2.ClusterSetSpec{
			ClusterID: "east", Leaders: []v1alpha2.LeaderCluster{{ClusterID: "hub", Server: "https://hub.example"}}}})
	}
	_, err := Join(t.Context(), c, opts)
	wantError(t, err, exit.Refused, "2 ClusterSets", "ADM-CS-1")
}

func TestJoinLeavesForeignSecretsAlone(t *testing.T) {
	c, _ := cluster(t)
	opts := eastJoins(t, c)
	foreign := tokenSecret("east-token", "of somebody else")
	foreign.Namespace = opts.Namespace
	create(t, c, foreign)
	_, err := Join(t.Context(), c, opts)
	wantError(t, err, exit.Refused, `Secret "east-token"`, "--token-secret-name")
	absent(t, c, opts.Namespace, "fleet", &v1alpha2.ClusterSet{})
}

func TestJoinNeedsWhatItNames(t *testing.T) {
	c, _ := cluster(t)
	opts := eastJoins(t, c)
	t.Run("the Namespace", func(t *testing.T) {
		wrong := opts
		wrong.Namespace = "nowhere"
		_, err := Join(t.Context(), c, wrong)
		wantError(t, err, exit.Failed, `no Namespace "nowhere"`, "kubectl create namespace nowhere")
	})
	t.Run("the Secret", func(t *testing.T) {
		wrong := opts
		wrong.Token, wrong.TokenSecretName = nil, "nothing"
		_, err := Join(t.Context(), c, wrong)
		wantError(t, err, exit.Failed, `Secret "nothing"`, "--token-secret-file")
	})
	t.Run("the keys of the Secret", func(t *testing.T) {
		create(t, c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: opts.Namespace, Name: "half"}, Data: map[string][]byte{"token": []byte("x")}})
		wrong := opts
		wrong.Token, wrong.TokenSecretName = nil, "half"
		_, err := Join(t.Context(), c, wrong)
		wantError(t, err, exit.Failed, `"half"`, `"ca.crt"`)
	})
}

// answers lets the member controller say something as soon as Join waits.
func answers(t *testing.T, c client.Client, opts *JoinOptions, pulse clusterset.Pulse) {
	t.Helper()
	opts.Progress = func(sentence string) {
		if !strings.Contains(sentence, "until leader") {
			return
		}
		var set v1alpha2.ClusterSet
		get(t, c, opts.Namespace, opts.ClusterSet, &set)
		takeUp(t, c, opts.Namespace, opts.ClusterSet, clusterset.MemberStatus(&set, pulse, time.Now(), time.Hour))
	}
}

func TestJoinWaitsForTheLeadersAnswer(t *testing.T) {
	c, _ := cluster(t)
	opts := eastJoins(t, c)
	opts.Wait = testTime
	answers(t, c, &opts, clusterset.Pulse{LastBeat: time.Now(), Answered: true})
	var said []string
	answer := opts.Progress
	opts.Progress = func(sentence string) { said = append(said, sentence); answer(sentence) }
	if _, err := Join(t.Context(), c, opts); err != nil {
		t.Fatal(err)
	}
	// Nothing is missed that could not have been there yet.
	same(t, []string{`waiting up to 1m0s until leader "hub" has answered`}, said)
}

func TestJoinEndsWithWhatIsSoNow(t *testing.T) {
	opts := JoinOptions{ClusterSet: "fleet", ClusterID: "east", Wait: testTime}
	if got := opts.closing(); !strings.HasPrefix(got, `cluster "east" is a member of ClusterSet "fleet"; next: `) || !strings.Contains(got, "lockstep mc export") {
		t.Error(got)
	}
	opts.Wait = 0
	if got := opts.closing(); !strings.HasPrefix(got, `cluster "east" is to join ClusterSet "fleet", and nobody has waited`) || !strings.Contains(got, "lockstep mc status") {
		t.Error(got)
	}
}

func TestJoinTakesBackWhatDidNotComeAbout(t *testing.T) {
	c, _ := cluster(t)
	for name, world := range map[string]struct {
		pulse clusterset.Pulse
		code  int
		words []string
	}{
		"the token is refused": {clusterset.Pulse{Problem: &clusterset.Problem{Reason: clusterset.ReasonUnauthorized, Message: "the token is not accepted"}},
			exit.Failed, []string{"the token is not accepted"}},
		"the ID is in use": {clusterset.Pulse{Problem: &clusterset.Problem{Reason: clusterset.ReasonIDInUse, Message: "cluster ID is in use"}},
			exit.Refused, []string{"cluster ID is in use"}},
		"the leader is away": {clusterset.Pulse{Problem: &clusterset.Problem{Reason: clusterset.ReasonDisconnected, Message: "no route"}},
			exit.Waiting, []string{"no route", "--keep-on-failure"}},
		"the leader controller is away": {clusterset.Pulse{LastBeat: time.Now()},
			exit.Waiting, []string{"leader controller has not answered"}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := eastJoins(t, c)
			opts.Wait = testTime
			if world.code == exit.Waiting {
				opts.Wait = time.Second
			}
			answers(t, c, &opts, world.pulse)
			_, err := Join(t.Context(), c, opts)
			wantError(t, err, world.code, world.words...)
			absent(t, c, opts.Namespace, "fleet", &v1alpha2.ClusterSet{})
			absent(t, c, opts.Namespace, "east-token", &corev1.Secret{})
		})
	}
}

func TestJoinRestoresTheFormerToken(t *testing.T) {
	c, _ := cluster(t)
	opts := eastJoins(t, c)
	if _, err := Join(t.Context(), c, opts); err != nil {
		t.Fatal(err)
	}
	opts.Token = tokenSecret("east-token", "worse")
	opts.Wait = time.Second
	_, err := Join(t.Context(), c, opts)
	wantError(t, err, exit.Waiting, "no member controller")
	var secret corev1.Secret
	get(t, c, opts.Namespace, "east-token", &secret)
	same(t, "one", string(secret.Data["token"]))
	get(t, c, opts.Namespace, "fleet", &v1alpha2.ClusterSet{})
}

func TestJoinKeepsOnFailureWhenAsked(t *testing.T) {
	c, _ := cluster(t)
	opts := eastJoins(t, c)
	opts.Wait, opts.KeepOnFailure = time.Second, true
	_, err := Join(t.Context(), c, opts)
	wantError(t, err, exit.Waiting, "go on waiting")
	get(t, c, opts.Namespace, "east-token", &corev1.Secret{})
	get(t, c, opts.Namespace, "fleet", &v1alpha2.ClusterSet{})
}

func TestJoinThatIsStoppedSaysWhatThereIs(t *testing.T) {
	c, _ := cluster(t)
	opts := eastJoins(t, c)
	opts.Wait = testTime
	ctx, stop := context.WithCancel(t.Context())
	opts.Progress = func(string) { stop() }
	_, err := Join(ctx, c, opts)
	wantError(t, err, exit.Failed, `secret "east-token" (created)`, `clusterset "fleet" (created)`, "repeat the command", "mc leave --clusterset fleet")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the interrupt is not in the chain of %v", err)
	}
	get(t, c, opts.Namespace, "fleet", &v1alpha2.ClusterSet{})
}
