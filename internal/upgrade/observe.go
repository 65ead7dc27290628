package upgrade

import (
	"context"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	wire "github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/migration"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// observe reads what the runbook depends on: all of it anew, each member beside
// the others. It cannot fail; what could not be read says so in its place.
func (d *Driver) observe(ctx context.Context, run *v1alpha1.UpgradeRun) migration.Observed {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	target := run.Spec.ClusterSet
	o := migration.Observed{Set: target.Name, Journal: journalOf(run), Override: run.Spec.Policy.Override}
	o.Evidence.CLI = rule.Known("") // that of upstream; none takes part
	var tokens []corev1.Secret
	o.Versions = map[string]string{}
	o.Evidence.Leader, tokens = d.observeLeader(ctx, o.Versions)
	o.Tokens, o.TokenSecrets = d.tokens(ctx, tokens, o.Evidence.Leader)
	o.Leader = d.observeInstall(ctx, d.Leader, run, "", d.Run.Namespace)
	o.Targets, o.Evidence.Members = make([]migration.Target, len(target.Members)), make([]preflight.Member, len(target.Members))
	var all sync.WaitGroup
	for i, access := range target.Members {
		all.Go(func() {
			known := o.Journal["id/"+access.Context].Value
			r := memberReader{driver: d, access: access, leader: o.Evidence.Leader, tokens: tokens, run: run}
			o.Targets[i], o.Evidence.Members[i] = r.read(ctx, known)
		})
	}
	all.Wait()
	return o
}

// readTime bounds one look.
const readTime = time.Minute

// read is a value of the API server, or why it could not be had.
func read[T any](value T, err error) rule.Read[T] {
	if err != nil {
		return rule.Unreadable[T](err.Error())
	}
	return rule.Known(value)
}

// observeLeader reads the leader cluster; versions receives the resource versions of
// what may be deleted there.
func (d *Driver) observeLeader(ctx context.Context, versions map[string]string) (preflight.Leader, []corev1.Secret) {
	c, namespace := d.Leader, client.InNamespace(d.Run.Namespace)
	l := preflight.Leader{Namespace: d.Run.Namespace, Cluster: observeCluster(ctx, c, d.Run.Namespace, "leader")}
	l.Now = leaderTime(ctx, c)

	var announces wire.MemberClusterAnnounceList
	err := c.List(ctx, &announces, namespace)
	l.Announces = read(announces.Items, err)

	var exports wire.ResourceExportList
	err = c.List(ctx, &exports, namespace)
	l.Exports = read(exports.Items, err)

	var accounts corev1.ServiceAccountList
	err = c.List(ctx, &accounts, namespace)
	var identities []admission.Account
	for _, a := range accounts.Items {
		versions["ServiceAccount/"+a.Name] = a.ResourceVersion
		identities = append(identities, admission.AccountOf(a.Name, a.Annotations))
	}
	l.Accounts = read(identities, err)
	found, err := evidence.Grants(ctx, c, d.Run.Namespace)
	l.Grants = read(found, err)
	for _, g := range found {
		versions[g.Kind+"/"+g.Name] = g.Version
	}

	var secrets corev1.SecretList
	err = c.List(ctx, &secrets, namespace)
	var names []string
	for _, s := range secrets.Items {
		versions["Secret/"+s.Name] = s.ResourceVersion
		names = append(names, s.Name)
	}
	l.Secrets = read(names, err)
	return l, secrets.Items
}

// leaderTime asks the API server who we are: its answer says when it was given.
// That changes nothing and needs no right.
func leaderTime(ctx context.Context, c client.Client) rule.Read[time.Time] {
	review := &authenticationv1.SelfSubjectReview{}
	err := c.Create(ctx, review)
	return read(review.CreationTimestamp.Time, err)
}

// observeCluster reads what every role has: one place for leader and member.
func observeCluster(ctx context.Context, c Cluster, namespace, role string) preflight.Cluster {
	var seen preflight.Cluster
	system := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: "kube-system"}, system); err != nil {
		seen.Unreachable = err.Error()
		return seen
	}
	seen.UID = system.UID
	version, err := c.Kubernetes(ctx)
	seen.Kubernetes = read(version, err)
	var list v1alpha2.ClusterSetList
	err = c.List(ctx, &list, client.InNamespace(namespace))
	seen.ClusterSets = read(list.Items, err)
	seen.Legacy = legacy(ctx, c, namespace)
	seen.Controllers = controllers(ctx, c, namespace, role)
	return seen
}

func legacy(ctx context.Context, c client.Client, namespace string) rule.Read[preflight.Legacy] {
	var claims v1alpha2.ClusterClaimList
	err := c.List(ctx, &claims, client.InNamespace(namespace))
	if meta.IsNoMatchError(err) {
		return rule.Known(preflight.Legacy{})
	}
	return read(preflight.Legacy{ClaimsServed: true, Claims: claims.Items}, err)
}

// controllers are those in the Namespace of a role, whose they are by that.
func controllers(ctx context.Context, c client.Client, namespace, role string) rule.Read[[]preflight.Controller] {
	found, err := evidence.Controllers(ctx, c, namespace)
	for i := range found {
		found[i].Role = role
	}
	return read(found, err)
}

// tokens picks, for each ServiceAccount, the token to be handed out.
func (d *Driver) tokens(ctx context.Context, secrets []corev1.Secret, l preflight.Leader) (rule.Read[[]migration.Token], map[string][]string) {
	if _, ok := l.Secrets.Get(); !ok {
		return rule.Unreadable[[]migration.Token](l.Secrets.Problem()), nil
	}
	accounts, _ := l.Accounts.Get()
	var tokens []migration.Token
	byAccount := map[string][]string{}
	for _, a := range accounts {
		rotation := clusterset.ReadRotation(a.Name, secrets)
		for _, s := range rotation.Old {
			byAccount[a.Name] = append(byAccount[a.Name], s.Name)
		}
		secret := rotation.Token()
		if secret == nil {
			continue
		}
		if rotation.New != nil {
			byAccount[a.Name] = append(byAccount[a.Name], secret.Name)
		}
		token := clusterset.Token(secret.Data[wire.TokenSecretTokenKey])
		tokens = append(tokens, migration.Token{
			Secret: secret.Name, Account: a.Name, Credential: clusterset.Credential(token),
			Signed: len(token) > 0 && len(secret.Data[wire.TokenSecretCAKey]) > 0,
		})
	}
	return rule.Known(tokens), byAccount
}
