package upgrade

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	wire "github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/migration"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// memberReader reads one member.
type memberReader struct {
	driver *Driver
	access v1alpha1.MemberAccess
	leader preflight.Leader
	tokens []corev1.Secret // of the common area
	run    *v1alpha1.UpgradeRun
}

func (r memberReader) read(ctx context.Context, knownID string) (migration.Target, preflight.Member) {
	namespace := r.access.Namespace
	if namespace == "" {
		namespace = wire.DefaultMemberNamespace
	}
	target := migration.Target{Context: r.access.Context, Namespace: namespace, Token: r.access.Token}
	cluster, err := r.driver.Connect(r.access.Context)
	if err != nil {
		target.NoWay = err.Error()
		return target, preflight.Member{ID: knownID, Cluster: preflight.Cluster{Unreachable: err.Error()}}
	}
	m := preflight.Member{ID: knownID, Cluster: observeCluster(ctx, cluster, namespace, "member")}
	m.Exported = exported(ctx, cluster)
	all, ok := m.ClusterSets.Get()
	if !ok || len(all) == 0 {
		return target, m
	}
	set := all[0]
	m.ID, target.SetVersion = set.Spec.ClusterID, set.ResourceVersion
	named := ""
	if len(set.Spec.Leaders) > 0 {
		named = set.Spec.Leaders[0].Secret
	}
	var inUse *corev1.Secret
	for _, name := range r.places(m.ID, named) {
		secret := &corev1.Secret{}
		err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			m.Credential = rule.Unreadable[preflight.Credential](err.Error())
			return target, m
		}
		target.Secrets = append(target.Secrets, migration.Secret{
			Name: name, Type: string(secret.Type), Ours: secret.Annotations[wire.AnnotationCreatedByCLI] != "", Seen: secret.ResourceVersion,
			Credential: clusterset.Credential(clusterset.Token(bytes.TrimSpace(secret.Data[wire.TokenSecretTokenKey]))),
		})
		if name == named {
			inUse = secret
		}
	}
	m.Credential = r.credential(ctx, named, inUse)
	if c, ok := m.Credential.Get(); ok {
		c.Directed = evidence.LastChange(&set, "spec")
		m.Credential = rule.Known(c)
	}
	deployment, err := deploymentIn(ctx, cluster, namespace)
	target.Rolling = read("", err)
	if deployment != nil && err == nil {
		target.Rolling, target.DeploymentVersion = rule.Known(rolling(deployment)), deployment.ResourceVersion
	}
	target.Install = r.driver.observeInstall(ctx, cluster, r.run, r.access.Context, namespace)
	return target, m
}

// places are the Secrets that matter: the one in use, and where a token may go.
func (r memberReader) places(id, named string) []string {
	account := r.access.Token
	if account == "" {
		account = id + "-token"
	}
	accounts, _ := r.leader.Accounts.Get()
	for _, a := range accounts {
		if a.BoundID == id {
			account = a.Name
		}
	}
	names := []string{named, account, account + "-own"}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
}

// credential is what can be told of a member's token.
func (r memberReader) credential(ctx context.Context, named string, secret *corev1.Secret) rule.Read[preflight.Credential] {
	if secret == nil {
		return rule.Known(preflight.Credential{Secret: named, Rejected: fmt.Sprintf("there is no Secret %q", named)})
	}
	token := bytes.TrimSpace(secret.Data[wire.TokenSecretTokenKey])
	c := preflight.Credential{Secret: named, Written: evidence.LastChange(secret, "data")}
	c.Namespace, c.Account = evidence.Subject(string(token))
	why, err := r.rejected(ctx, token)
	if err != nil {
		return rule.Unreadable[preflight.Credential](err.Error())
	}
	c.Rejected = why
	return rule.Known(c)
}

// rejected is why the leader would not take a token. One that stands in a token
// Secret of the common area is taken; to ask about it would leave a mark on that
// Secret as if it had been used.
func (r memberReader) rejected(ctx context.Context, token []byte) (string, error) {
	if len(token) == 0 {
		return "the Secret holds no token", nil
	}
	for _, s := range r.tokens {
		if s.Type == corev1.SecretTypeServiceAccountToken && bytes.Equal(s.Data[wire.TokenSecretTokenKey], token) {
			return "", nil
		}
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: string(token)}}
	err := r.driver.Leader.Create(ctx, review)
	review.Spec.Token = ""
	if err != nil {
		return "", fmt.Errorf("the leader could not be asked about the token: %w", err)
	}
	if !review.Status.Authenticated {
		return "the leader does not know it, or not any more", nil
	}
	return "", nil
}

func exported(ctx context.Context, c client.Client) rule.Read[[]preflight.Exported] {
	var list mcsv1beta1.ServiceExportList
	err := c.List(ctx, &list)
	if meta.IsNoMatchError(err) {
		return rule.Known([]preflight.Exported(nil))
	}
	var found []preflight.Exported
	for _, x := range list.Items {
		found = append(found, preflight.Exported{
			NamespacedName: types.NamespacedName{Namespace: x.Namespace, Name: x.Name},
			Valid:          meta.IsStatusConditionTrue(x.Status.Conditions, string(mcsv1beta1.ServiceExportConditionValid)),
		})
	}
	return read(found, err)
}

// tokenOf reads the token Secret of an account that is to be handed out.
func (d *Driver) tokenOf(ctx context.Context, account string) (*corev1.Secret, error) {
	var secrets corev1.SecretList
	if err := d.Leader.List(ctx, &secrets, client.InNamespace(d.Run.Namespace)); err != nil {
		return nil, err
	}
	token := clusterset.ReadRotation(account, secrets.Items).Token()
	if token == nil || len(token.Data[wire.TokenSecretTokenKey]) == 0 {
		return nil, stale("secrets", rollout.Change{Name: account})
	}
	return token, nil
}
