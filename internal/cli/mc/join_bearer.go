package mc

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// askTime bounds each question to the leader. It may not be reachable from here
// at all, only from the member; then the member finds out.
const askTime = 3 * time.Second

// checkBound refuses a token whose manifest says that it is bound to another
// cluster. That of upstream says nothing.
func (o JoinOptions) checkBound(secret *corev1.Secret) error {
	bound := secret.Annotations[v1alpha1.AnnotationClusterID]
	if bound == "" || bound == o.ClusterID {
		return nil
	}
	return o.notItsToken(fmt.Sprintf("the token of Secret %q was made for cluster %q", secret.Name, bound))
}

func (o JoinOptions) notItsToken(why string) error {
	return &refusal.Refusal{What: o.what(), Why: why, Rule: "ADM-MCA-6",
		Next: fmt.Sprintf("make one for this cluster at the leader: lockstep mc create membertoken %s-token --cluster-id %s -n %s -o FILE", o.ClusterID, o.ClusterID, o.LeaderNamespace)}
}

// askLeader refuses a token that belongs to another member, as far as the leader
// says so from here: because that member is in the common area with it, or
// because the leader's admission would not let it announce this cluster. What
// cannot be asked is left to the member controller.
func (r *joinRun) askLeader(ctx context.Context) error {
	secret := cmp.Or(r.present, r.Token)
	token := clusterset.Token(secret.Data[v1alpha1.TokenSecretTokenKey])
	if clusterset.Credential(token) == "" {
		return nil // no token of a ServiceAccount's Secret, so nobody tells of it
	}
	leader, err := r.asBearer(secret)
	if err != nil {
		return nil //nolint:nilerr // the member controller will say what is wrong with it
	}
	var announces v1alpha1.MemberClusterAnnounceList
	if err := leader.List(ctx, &announces, client.InNamespace(r.LeaderNamespace)); err != nil {
		return nil //nolint:nilerr // it cannot be asked
	}
	if other := clusterset.OtherBearer(r.ClusterID, token, announces.Items); other != "" {
		return r.notItsToken(fmt.Sprintf("member %q is in the common area with the token of Secret %q", other, secret.Name))
	}
	return r.tryAnnounce(ctx, leader, announces.Items)
}

// tryAnnounce lets the leader's API server judge the announce of a new member,
// and keep nothing of it.
func (r *joinRun) tryAnnounce(ctx context.Context, leader client.Client, announces []v1alpha1.MemberClusterAnnounce) error {
	announce := &v1alpha1.MemberClusterAnnounce{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.LeaderNamespace, Name: identity.AnnounceName(r.ClusterID)},
		ClusterID:  r.ClusterID, ClusterSetID: r.ClusterSet, LeaderClusterID: r.LeaderClusterID,
	}
	for _, a := range announces {
		if a.Name == announce.Name {
			return nil // it is a member: rules of joining are not those of staying
		}
	}
	err := leader.Create(ctx, announce, client.DryRunAll)
	if err != nil && deniedByAdmission(err) && !apierrors.IsAlreadyExists(err) {
		return explain(r.what(), err)
	}
	return nil
}

// asBearer speaks to the leader as the member will.
func (r *joinRun) asBearer(secret *corev1.Secret) (client.Client, error) {
	config := &rest.Config{
		Host: r.LeaderAPIServer, BearerToken: string(secret.Data[v1alpha1.TokenSecretTokenKey]),
		TLSClientConfig: rest.TLSClientConfig{CAData: secret.Data[v1alpha1.TokenSecretCAKey]},
		Timeout:         askTime, WarningHandler: rest.NoWarnings{},
	}
	return client.New(config, client.Options{Scheme: scheme.New(), Mapper: scheme.AreaMapper()})
}
