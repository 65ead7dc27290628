package mc

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/joinfile"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// validate looks at the options alone and tells all problems at once.
func (o JoinOptions) validate(now time.Time) error {
	if missing := o.missing(); missing != nil {
		return missing
	}
	problems := []error{
		checkClusterSetID(o.what(), o.ClusterSet),
		checkClusterID(o.what(), o.ClusterID),
		checkServer(o.what(), o.LeaderAPIServer, o.AllowLoopback),
	}
	if o.TokenSecretName == "" {
		problems = append(problems, o.checkToken(o.Token.Data[v1alpha1.TokenSecretTokenKey], now), o.checkBound(o.Token))
	}
	return errors.Join(problems...)
}

// missing names each value a membership cannot be without, by its flag and its
// key in the join config.
func (o JoinOptions) missing() error {
	var problems []error
	for _, need := range []struct{ value, flag, key string }{
		{o.LeaderClusterID, "--leader-clusterid", "leaderClusterID"},
		{o.LeaderAPIServer, "--leader-apiserver", "leaderAPIServer"},
		{o.LeaderNamespace, "--leader-namespace", "leaderNamespace"},
		{o.ClusterSet, "--clusterset", "clusterSetID"},
		{o.ClusterID, "--clusterid", "clusterID"},
	} {
		if need.value == "" {
			problems = append(problems, exit.Usagef("%s is missing; give it, or %s in the file of --config-file", need.flag, need.key))
		}
	}
	if o.TokenSecretName == "" && o.Token == nil {
		problems = append(problems, exit.Usagef("the member token is missing; give --token-secret-file, --token-secret-name, or the Secret as second document of the file of --config-file"))
	}
	return errors.Join(problems...)
}

// check looks at the cluster, before anything is written there.
func (r *joinRun) check(ctx context.Context) error {
	next := fmt.Sprintf("install the member controller first, or name its Namespace with -n; a Namespace is made with: kubectl create namespace %s", r.Namespace)
	if err := needNamespace(ctx, r.client, r.what(), r.Namespace, next); err != nil {
		return err
	}
	present, err := onlySet(ctx, r.client, r.what(), r.Namespace)
	if err != nil {
		return err
	}
	if present != nil {
		if err := r.compare(present); err != nil {
			return err
		}
	}
	if err := errors.Join(r.refuseSecondMembership(ctx), r.checkPresentToken(ctx)); err != nil {
		return err
	}
	return r.askLeader(ctx)
}

// compare refuses what would be another membership. The address of the leader,
// the Secret and the leader's Namespace may change.
func (r *joinRun) compare(present *v1alpha2.ClusterSet) error {
	same := present.Name == r.ClusterSet &&
		(present.Spec.ClusterID == r.ClusterID || present.Spec.ClusterID == "") &&
		leaderOf(present).ClusterID == r.LeaderClusterID
	if same && isMember(present) {
		return nil
	}
	next := fmt.Sprintf("leave the present one first (lockstep mc leave --clusterset %s -n %s), or repeat the command with its names", present.Name, r.Namespace)
	if !isMember(present) {
		next = "name the Namespace of the member controller with -n; a cluster that leads and takes part has one Namespace for each"
	}
	return &refusal.Refusal{
		What: r.what() + fmt.Sprintf(" led by %q", r.LeaderClusterID),
		Why: fmt.Sprintf("Namespace %q has ClusterSet %q of cluster %q led by %q",
			r.Namespace, present.Name, present.Spec.ClusterID, leaderOf(present).ClusterID),
		Next: next,
		Rule: "ADM-CS-1",
	}
}

// refuseSecondMembership looks into the other Namespaces: two member controllers
// would fight over the same imported Services. Not being allowed to look is no
// reason to refuse.
func (r *joinRun) refuseSecondMembership(ctx context.Context) error {
	var sets v1alpha2.ClusterSetList
	if err := r.client.List(ctx, &sets); err != nil {
		if apierrors.IsForbidden(err) {
			return nil
		}
		return explain(r.what(), err)
	}
	for i := range sets.Items {
		if other := &sets.Items[i]; other.Namespace != r.Namespace && isMember(other) {
			return &refusal.Refusal{
				What: r.what(),
				Why:  fmt.Sprintf("this cluster is member %q of ClusterSet %q through Namespace %q", other.Spec.ClusterID, other.Name, other.Namespace),
				Next: fmt.Sprintf("join through that Namespace (-n %s), or leave there first", other.Namespace),
				Rule: "ADM-CS-1",
			}
		}
	}
	return nil
}

// checkPresentToken looks at a Secret the user says is there.
func (r *joinRun) checkPresentToken(ctx context.Context) error {
	if r.TokenSecretName == "" {
		return nil
	}
	secret := newSecret(r.Namespace, r.TokenSecretName)
	err := r.client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if apierrors.IsNotFound(err) {
		return failed(r.what(), "apply the manifest made by \"lockstep mc create membertoken -o FILE\" there, or give it with --token-secret-file",
			fmt.Errorf("no Secret %q in Namespace %q", r.TokenSecretName, r.Namespace))
	}
	if err == nil {
		err = joinfile.CheckToken(secret)
	}
	if err != nil {
		return explain(r.what(), err)
	}
	r.present = secret
	return errors.Join(r.checkToken(secret.Data[v1alpha1.TokenSecretTokenKey], time.Now()), r.checkBound(secret))
}
