package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc"
	"github.com/lockstep-dev/lockstep/internal/cli/upgrade"
)

// Names of the credential that all members shared before v2.7.
const (
	sharedAccount = "antrea-mc-member-access-sa"
	sharedBinding = "antrea-mc-member-cluster-rolebinding"
	sharedSecret  = "antrea-mc-member-access-token"
)

// members of the chapter migrate; the leader only leads.
var members = []string{"east", "west"}

// migrate is the chapter about identities.
func migrate() []step {
	var eye *eye
	return []step{
		{"Start three real control planes: leader, east, west", func(ctx context.Context, t *tour) error {
			begun := time.Now()
			if err := t.startClusters(ctx); err != nil {
				return err
			}
			t.say("etcd, kube-apiserver and kube-controller-manager of 3 clusters are ready after %.1f s", time.Since(begun).Seconds())
			return nil
		}},
		{"Install the controllers: CRDs, RBAC, Deployments", installRoles},
		{"Let both members join with one credential, as before v2.7", joinSharing},
		{"Export Service shop/cart from east, and watch its endpoints in west from now on", func(ctx context.Context, t *tour) error {
			err := exportFromEast(ctx, t)
			if err == nil {
				eye, err = t.watch(ctx, "west", "cart")
			}
			return err
		}},
		{"Look before the upgrade: lockstep mc preflight", preflightBlocks},
		{"Forget a member: the run is refused", forgetMember},
		{"The plan: lockstep upgrade clusterset plan", planUpgrade},
		{"Run it: own credentials, proof of each, the leader, the members, the shared credential last", func(ctx context.Context, t *tour) error { return runUpgrade(ctx, t, eye) }},
		{"Rename east to harbor: lockstep mc rename", func(ctx context.Context, t *tour) error { return renameEast(ctx, t, eye) }},
		{"The ClusterSet on one page: lockstep mc status", status},
	}
}

// joinSharing makes one credential, and two members that use it.
func joinSharing(ctx context.Context, t *tour) error {
	leader, area := t.clients["leader"], v1alpha1.DefaultLeaderNamespace
	if _, err := mc.Init(ctx, leader, mc.InitOptions{Namespace: area, ClusterSet: clusterSet, ClusterID: "leader", Wait: patience}); err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: sharedSecret, Namespace: area, Annotations: map[string]string{corev1.ServiceAccountNameKey: sharedAccount}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: sharedAccount, Namespace: area}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: sharedBinding, Namespace: area},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: v1alpha1.MemberClusterRole},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: area, Name: sharedAccount}},
		},
		secret,
	} {
		if err := leader.Create(ctx, object); err != nil {
			return err
		}
	}
	if _, err := until(ctx, "the shared token", patience, func(ctx context.Context) error {
		if err := leader.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		if len(secret.Data["token"]) == 0 || len(secret.Data["ca.crt"]) == 0 {
			return errors.New("it is not signed")
		}
		return nil
	}); err != nil {
		return err
	}
	t.say("leader: ServiceAccount %s, bound to no cluster ID", sharedAccount)
	for _, name := range members {
		if err := t.joinWith(ctx, name, secret); err != nil {
			return err
		}
		t.say("%s has joined with its token", name)
	}
	return nil
}

// joinWith writes what an administrator applied before there was a check of whose
// token it is.
func (t *tour) joinWith(ctx context.Context, name string, token *corev1.Secret) error {
	server, err := t.leaderAddress(name)
	if err != nil {
		return err
	}
	member, namespace := t.clients[name], v1alpha1.DefaultMemberNamespace
	set := &v1alpha2.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: clusterSet, Namespace: namespace}}
	set.Spec = v1alpha2.ClusterSetSpec{ClusterID: name, Namespace: v1alpha1.DefaultLeaderNamespace,
		Leaders: []v1alpha2.LeaderCluster{{ClusterID: "leader", Server: server, Secret: "leader-token"}}}
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "leader-token", Namespace: namespace}, Type: corev1.SecretTypeOpaque,
			Data: map[string][]byte{"ca.crt": token.Data["ca.crt"], "token": token.Data["token"]}},
		set,
	} {
		if err := member.Create(ctx, object); err != nil {
			return err
		}
	}
	_, err = until(ctx, "member "+name, patience, func(ctx context.Context) error {
		if err := member.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if len(set.Status.Conditions) == 0 || set.Status.Conditions[0].Status != corev1.ConditionTrue {
			return fmt.Errorf("its conditions are %+v", set.Status.Conditions)
		}
		return nil
	})
	return err
}

// preflightBlocks shows what stands in the way of the upgrade.
func preflightBlocks(ctx context.Context, t *tour) error {
	out, err := t.types(ctx, mc.NewCommand, "preflight --contexts leader,east,west --only UPG-CHK-1,UPG-CHK-4,UPG-CHK-5")
	if exit.Code(err) != exit.Refused || !strings.Contains(out, "UPG-CHK-1") {
		return fmt.Errorf("preflight ends with %v and says: %s", err, out)
	}
	t.say("%s\nexit code %d: %v", strings.TrimRight(out, "\n"), exit.Code(err), err)
	return nil
}

// upgradeWith is what all calls of the upgrade have in common.
const upgradeWith = " --context leader --image lockstep:next"

// forgetMember drives a run that does not name west. It may not go on to the leader.
func forgetMember(ctx context.Context, t *tour) error {
	_, err := t.types(ctx, upgrade.New, "clusterset run --members east --name forgetful"+upgradeWith)
	if exit.Code(err) != exit.Refused || !strings.Contains(err.Error(), "west") {
		return fmt.Errorf("a run without west ends with %v", err)
	}
	t.say("lockstep upgrade clusterset run --members east%s\nexit code %d: %v", upgradeWith, exit.Code(err), err)
	return nil
}

func planUpgrade(ctx context.Context, t *tour) error {
	out, err := t.types(ctx, upgrade.New, "clusterset plan --members east,west"+upgradeWith)
	if err == nil {
		t.say("%s", strings.TrimRight(out, "\n"))
	}
	return err
}

// runUpgrade drives the run to its end, and looks at what is left.
func runUpgrade(ctx context.Context, t *tour, eye *eye) error {
	begun := time.Now()
	if _, err := t.types(ctx, upgrade.New, "clusterset run --members east,west --canary west"+upgradeWith); err != nil {
		return err
	}
	t.say("done after %.0f s", time.Since(begun).Seconds())
	leader, area := t.clients["leader"], v1alpha1.DefaultLeaderNamespace
	for _, object := range []client.Object{&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: sharedAccount}}, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: sharedBinding}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: sharedSecret}}} {
		object.SetNamespace(area)
		if err := leader.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%T %q of the shared credential is still there (%v)", object, object.GetName(), err)
		}
	}
	t.say("nothing is left of the shared credential")
	return eye.tell(t)
}

// renameEast is refused for an ID that would make a pair, and done for another.
func renameEast(ctx context.Context, t *tour, eye *eye) error {
	const with = " --contexts leader,east,west"
	_, err := t.types(ctx, mc.NewCommand, "rename east --to west-2"+with)
	if exit.Code(err) != exit.Refused {
		return fmt.Errorf("the rename to west-2 ends with %v", err)
	}
	t.say("lockstep mc rename east --to west-2\nexit code %d: %v", exit.Code(err), err)
	begun := time.Now()
	out, err := t.types(ctx, mc.NewCommand, "rename east --to harbor"+with)
	if err != nil {
		return err
	}
	t.say("lockstep mc rename east --to harbor: %s, after %.0f s", strings.TrimSpace(out), time.Since(begun).Seconds())
	if err := t.clients["west"].imports(ctx, "cart", "harbor"); err != nil {
		return err
	}
	return eye.tell(t)
}

// types runs a command as a user would, and returns what it prints to stdout. Its
// progress goes where that of the tour goes.
func (t *tour) types(ctx context.Context, tree func(genericiooptions.IOStreams) *cobra.Command, line string) (string, error) {
	var out bytes.Buffer
	command := tree(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: t.streams.ErrOut})
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SetArgs(append(strings.Fields(line), "--kubeconfig", filepath.Join(t.dir, "kubeconfig")))
	err := command.ExecuteContext(ctx)
	return out.String(), err
}
