package upgrade

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	wire "github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
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
	o.Evidence.Leader, tokens = d.observeLeader(ctx)
	o.Tokens, o.TokenSecrets = d.tokens(ctx, tokens, o.Evidence.Leader)
	o.Leader = d.observeInstall(ctx, d.Leader, "", d.Run.Namespace, run.Spec.Image)
	o.Targets, o.Evidence.Members = make([]migration.Target, len(target.Members)), make([]preflight.Member, len(target.Members))
	var all sync.WaitGroup
	for i, access := range target.Members {
		all.Go(func() {
			known := o.Journal["id/"+access.Context].Value
			r := memberReader{driver: d, access: access, leader: o.Evidence.Leader, tokens: tokens, image: run.Spec.Image}
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

func (d *Driver) observeLeader(ctx context.Context) (preflight.Leader, []corev1.Secret) {
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
	var found []admission.Account
	for _, a := range accounts.Items {
		found = append(found, admission.AccountOf(a.Name, a.Annotations))
	}
	l.Accounts = read(found, err)
	l.Grants = grants(ctx, c, d.Run.Namespace)

	var secrets corev1.SecretList
	err = c.List(ctx, &secrets, namespace)
	var names []string
	for _, s := range secrets.Items {
		if s.Type == corev1.SecretTypeServiceAccountToken {
			names = append(names, s.Name)
		}
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

// grants are the RoleBindings of the common area that let somebody write exports.
func grants(ctx context.Context, c client.Client, namespace string) rule.Read[[]preflight.Grant] {
	var roles rbacv1.RoleList
	if err := c.List(ctx, &roles, client.InNamespace(namespace)); err != nil {
		return rule.Unreadable[[]preflight.Grant](err.Error())
	}
	writers := sets.New[string]()
	for _, r := range roles.Items {
		if slices.ContainsFunc(r.Rules, writesExports) {
			writers.Insert(r.Name)
		}
	}
	var bindings rbacv1.RoleBindingList
	if err := c.List(ctx, &bindings, client.InNamespace(namespace)); err != nil {
		return rule.Unreadable[[]preflight.Grant](err.Error())
	}
	var found []preflight.Grant
	for _, b := range bindings.Items {
		g := preflight.Grant{
			Kind: "RoleBinding", Name: b.Name, Subjects: b.Subjects,
			MemberRole:    b.RoleRef.Kind == "Role" && b.RoleRef.Name == wire.MemberClusterRole,
			WritesExports: b.RoleRef.Kind == "Role" && writers.Has(b.RoleRef.Name),
		}
		for i, s := range g.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "" {
				g.Subjects[i].Namespace = namespace
			}
		}
		if g.MemberRole || g.WritesExports {
			found = append(found, g)
		}
	}
	return rule.Known(found)
}

func writesExports(r rbacv1.PolicyRule) bool {
	has := func(list []string, any ...string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return s == "*" || slices.Contains(any, s) })
	}
	return has(r.APIGroups, wire.GroupVersion.Group) && has(r.Resources, "resourceexports") && has(r.Verbs, "create", "update", "patch", "delete")
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

// deploymentName is that of every multi-cluster controller.
const deploymentName = "antrea-mc-controller"

func controllers(ctx context.Context, c client.Client, namespace, role string) rule.Read[[]preflight.Controller] {
	var deployments appsv1.DeploymentList
	if err := c.List(ctx, &deployments, client.InNamespace(namespace), client.MatchingFields{"metadata.name": deploymentName}); err != nil {
		return rule.Unreadable[[]preflight.Controller](err.Error())
	}
	var found []preflight.Controller
	for _, deployment := range deployments.Items {
		controller := preflight.Controller{Role: role, Namespace: namespace, Name: deployment.Name, Upstream: true}
		if s := deployment.Spec.Selector; s != nil {
			controller.Selector = s.MatchLabels
		}
		for _, container := range deployment.Spec.Template.Spec.Containers {
			if len(container.Args) > 0 && container.Args[0] == "run" {
				controller.Upstream = false
			}
			controller.Version = tagOf(container.Image)
		}
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels(controller.Selector)); err != nil {
			return rule.Unreadable[[]preflight.Controller](err.Error())
		}
		controller.Started = started(pods.Items)
		found = append(found, controller)
	}
	return rule.Known(found)
}

func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag
}

// started is when each process of running Pods was; one that is being replaced
// counts while it runs.
func started(pods []corev1.Pod) []time.Time {
	var times []time.Time
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			if status.State.Running != nil {
				times = append(times, status.State.Running.StartedAt.Time)
			}
		}
	}
	return times
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
