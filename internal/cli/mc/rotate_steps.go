package mc

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// ensureNew makes the Secret of the new token, or goes on with the one of a run
// that was stopped.
func (r *rotateRun) ensureNew(ctx context.Context) error {
	outcome := apply.Unchanged
	if r.rotation.New == nil {
		replaced := "" // an account whose tokens somebody has deleted gets one anew
		if last := r.rotation.Token(); last != nil {
			replaced = last.Name
		}
		r.rotation.New = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: r.Namespace, Name: r.Name + "-" + rand.String(5),
				Annotations: map[string]string{
					v1alpha1.AnnotationCreatedByCLI: "true", corev1.ServiceAccountNameKey: r.Name, clusterset.AnnotationReplaces: replaced,
				},
			},
			Type: corev1.SecretTypeServiceAccountToken,
		}
		outcome = apply.Created
		if err := r.client.Create(ctx, r.rotation.New); err != nil {
			return err
		}
	}
	r.result.Secret = r.rotation.New
	r.did(Touched{Kind: "secret", Namespace: r.Namespace, Name: r.rotation.New.Name, Outcome: outcome})
	return nil
}

func (r *rotateRun) awaitNew(ctx context.Context) error {
	err := awaitSigned(ctx, r.client, r.result.Secret, tokenTime)
	if errors.Is(err, errNotYet) {
		return latef("no token in Secret %q after %s; see that kube-controller-manager of the leader runs and signs tokens", r.result.Secret.Name, tokenTime)
	}
	return err
}

// checkMember compares the membership behind the member's context with the
// credential: another cluster must not get the token.
func (r *rotateRun) checkMember(ctx context.Context) error {
	what := fmt.Sprintf("%s for context %q", r.what(), r.Member.Context)
	set, err := onlySet(ctx, r.Member, what, r.Member.Namespace)
	if err != nil {
		return err
	}
	next := "give --member-context and --member-namespace of the member the token is bound to"
	switch {
	case set == nil || !isMember(set):
		return &refusal.Refusal{What: what, Next: next, Why: fmt.Sprintf("Namespace %q there holds no membership", r.Member.Namespace)}
	case set.Spec.ClusterID != r.id:
		return &refusal.Refusal{What: what, Next: next, Rule: "ADM-MCA-4", Why: fmt.Sprintf("that is cluster %q, the token is bound to %q", set.Spec.ClusterID, r.id)}
	}
	own, err := onlySet(ctx, r.client, what, r.Namespace)
	if err != nil {
		return err
	}
	if own == nil || own.Name != set.Name || own.Spec.ClusterID != leaderOf(set).ClusterID || set.Spec.Namespace != r.Namespace {
		return &refusal.Refusal{What: what, Next: "name leader and member of one ClusterSet with --context and --member-context",
			Why: fmt.Sprintf("cluster %q is a member of ClusterSet %q led by %q through Namespace %q, which is not what is here", r.id, set.Name, leaderOf(set).ClusterID, set.Spec.Namespace)}
	}
	r.set = client.ObjectKeyFromObject(set)
	return r.checkPlace(ctx, what, leaderOf(set).Secret)
}

func (r *rotateRun) checkPlace(ctx context.Context, what, name string) error {
	place, err := find[corev1.Secret](ctx, r.Member, client.ObjectKey{Namespace: r.Member.Namespace, Name: name})
	if err != nil {
		return explain(what, err)
	}
	if place == nil {
		return failed(what, "give the member a token first: lockstep mc join", fmt.Errorf("its ClusterSet names Secret %q, which is not there", name))
	}
	if place.Annotations[v1alpha1.AnnotationCreatedByCLI] == "" {
		return &refusal.Refusal{What: what, Why: fmt.Sprintf("Secret %q of the member was not made by this command", name),
			Next: "leave out --member-context, take the new token from the file of -o, and bring it into that Secret the way its owner does"}
	}
	r.place = place
	return nil
}

// carryToMember writes the token from memory into the Secret of the member.
func (r *rotateRun) carryToMember(ctx context.Context) error {
	token := r.result.Secret.Data
	done, err := ensure(ctx, r.Member.Client, r.place, func(present *corev1.Secret) error {
		if !equality.Semantic.DeepEqual(present.Data, token) {
			present.Data = maps.Clone(token)
		}
		return nil
	})
	if err == nil {
		r.did(Touched{Kind: "secret", Namespace: r.place.Namespace, Name: r.place.Name, Outcome: done.Outcome, Note: r.Member.Context})
	}
	return err
}
