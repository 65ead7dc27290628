package mc

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// awaitUse waits until it is proven that the member uses the new token, in one of
// two ways. A member of ours tells, with each heartbeat, which token it beats with.
// Of one that does not tell it is seen from outside: see clusterset.Watch. That the
// token was used proves nothing by itself, for somebody may have tried it. Without
// a way to the member only a person can know.
func (r *rotateRun) awaitUse(ctx context.Context) error {
	r.Progress.sayf("waiting up to %s until cluster %q uses the new token", r.Wait, r.id)
	missing, seen := fmt.Sprintf("cluster %q has not used the new token", r.id), &clusterset.Watch{}
	err := until(ctx, max(r.Wait, lookAgain), func(ctx context.Context) (bool, error) {
		why, err := r.unproven(ctx, seen)
		if err == nil && why != "" {
			missing = why
		}
		return err == nil && why == "", err
	})
	if errors.Is(err, errNotYet) && !r.hopeless {
		return latef("%s, after %s%s", missing, r.Wait, r.memberSays(ctx))
	}
	return err
}

// unproven is what is missing until the member is proven to use the new token;
// empty when it is.
func (r *rotateRun) unproven(ctx context.Context, seen *clusterset.Watch) (string, error) {
	var secret corev1.Secret
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(r.result.Secret), &secret); err != nil {
		return "", err
	}
	if !clusterset.Used(&secret) {
		return fmt.Sprintf("cluster %q has not used the new token", r.id), nil
	}
	now, err := r.beat(ctx)
	if err != nil {
		return "", err
	}
	switch clusterset.ReadProof(now.credential, clusterset.Token(secret.Data[corev1.ServiceAccountTokenKey])) {
	case clusterset.ProofGiven:
		r.next = ""
		return "", nil
	case clusterset.ProofMissing:
		return fmt.Sprintf("the new token was used, but cluster %q still announces itself with another", r.id), nil
	}
	r.next = r.deleteByHand()
	if r.Member == nil {
		r.hopeless = true // waiting longer tells no more
		return "", latef("the new token was used, but cluster %q does not tell which token it uses", r.id)
	}
	why, err := r.watch(ctx, seen, now.touch)
	if err != nil || why == "" {
		return "", err
	}
	return fmt.Sprintf("cluster %q does not tell which token it uses, and %s", r.id, why), nil
}

// watch looks at a member that does not tell.
func (r *rotateRun) watch(ctx context.Context, seen *clusterset.Watch, touch string) (string, error) {
	var place corev1.Secret
	if err := r.Member.Get(ctx, client.ObjectKeyFromObject(r.place), &place); err != nil {
		return "", err
	}
	controllers, err := evidence.Controllers(ctx, r.Member, r.Member.Namespace)
	if err != nil {
		return "", fmt.Errorf("cannot see when the controller of cluster %q was started: %w", r.id, err)
	}
	sight := clusterset.Sight{Written: evidence.LastChange(&place, "data"), Touch: touch, Now: time.Now()}
	for _, c := range controllers {
		sight.Started = append(sight.Started, c.Started...)
		if c.Upstream {
			r.next = fmt.Sprintf("restart its controller, which keeps its first connection, and repeat the command: kubectl --context %s -n %s rollout restart deployment %s",
				r.Member.Context, c.Namespace, c.Name)
		}
	}
	return seen.Look(sight), nil
}

// heartbeat is what the member's part of its announce says; the leader writes
// other parts of it.
type heartbeat struct {
	touch, credential string
}

func (r *rotateRun) beat(ctx context.Context) (heartbeat, error) {
	announce, err := find[v1alpha1.MemberClusterAnnounce](ctx, r.client, client.ObjectKey{Namespace: r.Namespace, Name: identity.AnnounceName(r.id)})
	if err != nil || announce == nil {
		return heartbeat{}, err
	}
	return heartbeat{announce.Annotations[v1alpha1.AnnotationTouch], announce.Annotations[v1alpha1.AnnotationCredential]}, nil
}

// deleteByHand is what is left to do when only a person can know that the member
// has the new token.
func (r *rotateRun) deleteByHand() string {
	command := fmt.Sprintf("kubectl -n %s delete secret", r.Namespace)
	for _, old := range r.rotation.Old {
		command += " " + old.Name
	}
	return fmt.Sprintf("see that cluster %q has the new token, and then delete the old: %s", r.id, command)
}

// memberSays adds what the member says about its connection.
func (r *rotateRun) memberSays(ctx context.Context) string {
	if r.Member == nil {
		return ""
	}
	set, err := find[v1alpha2.ClusterSet](ctx, r.Member, r.set)
	if err != nil || set == nil {
		return ""
	}
	if s := readStanding(set); !s.Member {
		return ": " + s.Sentence
	}
	return ""
}
