package mc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/joinfile"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// RotateTokenOptions name the credential of one member.
type RotateTokenOptions struct {
	// Namespace is the common area.
	Namespace string
	// Name of the member token.
	Name string
	// Member is where the new token is carried to; nil: somebody else does it.
	Member *MemberSide
	// Manifest receives the Secret for the member, when Member is nil.
	Manifest Sink
	// Wait bounds the wait until the member uses the new token.
	Wait     time.Duration
	Progress Progress
}

// MemberSide is one member as its administrator reaches it.
type MemberSide struct {
	client.Client
	Context string // for sentences
	// Namespace of the member controller.
	Namespace string
}

// RotateTokenResult says what RotateToken did.
type RotateTokenResult struct {
	Touched []Touched
	// Secret is the leader's, with the new token: hand it on, never print it.
	Secret *corev1.Secret
}

// RotateToken gives a member a new token, and removes the old one when the
// member is proven to use the new:
//
//	leader  make the new token ──────────────────── see it used ─► delete the old
//	member                     └► put it in place ─► beat with it ┘
//
// Both tokens are valid in between, so nothing is interrupted. All that has to be
// remembered stands on the new Secret; a run that was stopped anywhere is
// continued by the next one.
func RotateToken(ctx context.Context, c client.Client, opts RotateTokenOptions) (RotateTokenResult, error) {
	run := rotateRun{RotateTokenOptions: opts, client: c}
	if err := run.check(ctx); err != nil {
		return RotateTokenResult{}, err
	}
	err := run.rotate(ctx)
	return run.result, run.explain(ctx, err)
}

type rotateRun struct {
	RotateTokenOptions
	client   client.Client
	id       string // of the member
	rotation clusterset.Rotation
	// place is the Secret of the member; nil without a member side.
	place  *corev1.Secret
	set    client.ObjectKey // of the member's ClusterSet
	result RotateTokenResult
	// next is what to do when the time is up; "" for the usual. hopeless: waiting
	// would not help.
	next     string
	hopeless bool
}

func (r *rotateRun) what() string {
	return fmt.Sprintf("cannot rotate member token %q in Namespace %q", r.Name, r.Namespace)
}

// check does everything that can refuse, before anything is written.
func (r *rotateRun) check(ctx context.Context) error {
	next := fmt.Sprintf("see what there is: lockstep mc get membertoken -n %s", r.Namespace)
	if err := needNamespace(ctx, r.client, r.what(), r.Namespace, next); err != nil {
		return err
	}
	account, err := find[corev1.ServiceAccount](ctx, r.client, client.ObjectKey{Namespace: r.Namespace, Name: r.Name})
	switch {
	case err != nil:
		return explain(r.what(), err)
	case account == nil:
		return failed(r.what(), next, errors.New("there is no ServiceAccount of that name"))
	case account.Annotations[v1alpha1.AnnotationClusterID] == "":
		return &refusal.Refusal{What: r.what(), Why: "its ServiceAccount is bound to no cluster", Rule: "ADM-MCA-4",
			Next: fmt.Sprintf("bind it: lockstep mc create membertoken %s --cluster-id ID -n %s", r.Name, r.Namespace)}
	}
	r.id = account.Annotations[v1alpha1.AnnotationClusterID]
	if r.rotation, err = readRotation(ctx, r.client, r.Namespace, r.Name); err != nil {
		return explain(r.what(), err)
	}
	if err := errors.Join(r.refuseForeign(), r.refuseShared(ctx)); err != nil || r.Member == nil {
		return err
	}
	return r.checkMember(ctx)
}

// refuseForeign: a token that stays valid would make the rotation worth nothing.
func (r *rotateRun) refuseForeign() error {
	for _, old := range r.rotation.Old {
		if old.Annotations[v1alpha1.AnnotationCreatedByCLI] == "" {
			return &refusal.Refusal{What: r.what(), Why: fmt.Sprintf("Secret %q holds a token of it and was not made by this command, which therefore would not delete it", old.Name),
				Next: fmt.Sprintf("delete it, or hand it over: kubectl -n %s annotate secret %s %s=true", r.Namespace, old.Name, v1alpha1.AnnotationCreatedByCLI)}
		}
	}
	return nil
}

// refuseShared: another member that beats with a token of this credential would
// be cut off when the token is deleted, for the new one goes to one member only.
func (r *rotateRun) refuseShared(ctx context.Context) error {
	var announces v1alpha1.MemberClusterAnnounceList
	if err := r.client.List(ctx, &announces, client.InNamespace(r.Namespace)); err != nil {
		return explain(r.what(), err)
	}
	for _, token := range append(slices.Clone(r.rotation.Old), r.rotation.New) {
		if token == nil {
			continue
		}
		bearer := clusterset.Token(token.Data[corev1.ServiceAccountTokenKey])
		if other := clusterset.OtherBearer(r.id, bearer, announces.Items); other != "" {
			return &refusal.Refusal{What: r.what(), Rule: "ADM-MCA-6",
				Why: fmt.Sprintf("member %q uses it as well, although it is bound to %q, and would be cut off", other, r.id),
				Next: fmt.Sprintf("give that member its own first: lockstep mc create membertoken %s-token --cluster-id %s -n %s -o FILE, and there lockstep mc join with FILE",
					other, other, r.Namespace)}
		}
	}
	return nil
}

func readRotation(ctx context.Context, c client.Client, namespace, account string) (clusterset.Rotation, error) {
	var secrets corev1.SecretList
	if err := c.List(ctx, &secrets, client.InNamespace(namespace)); err != nil {
		return clusterset.Rotation{}, err
	}
	return clusterset.ReadRotation(account, secrets.Items), nil
}

func (r *rotateRun) rotate(ctx context.Context) error {
	for _, step := range []func(context.Context) error{r.ensureNew, r.awaitNew, r.carry, r.awaitUse, r.deleteOld} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// carry puts the new token where the member finds it.
func (r *rotateRun) carry(ctx context.Context) error {
	if r.Member != nil {
		return r.carryToMember(ctx)
	}
	if r.Manifest == nil {
		return nil
	}
	named := r.result.Secret.DeepCopy()
	named.Name = r.Name // the name the member knows it by
	metav1.SetMetaDataAnnotation(&named.ObjectMeta, v1alpha1.AnnotationClusterID, r.id)
	manifest, err := joinfile.RenderToken(named)
	if err == nil {
		err = r.Manifest(manifest)
	}
	if err != nil {
		return failed(fmt.Sprintf("cannot write the manifest of member token %q", r.Name), "repeat the command with a file that can be written; both tokens are valid", err)
	}
	r.Progress.sayf("apply the file in cluster %q, in the Namespace of its member controller; this command waits for it", r.id)
	return nil
}

// deleteOld ends the rotation. Each is deleted only as it was seen.
func (r *rotateRun) deleteOld(ctx context.Context) error {
	for _, old := range r.rotation.Old {
		if err := deleteByUID(ctx, r.client, old, old.UID); err != nil {
			return err
		}
		r.did(Touched{Kind: "secret", Namespace: r.Namespace, Name: old.Name, Outcome: apply.Deleted})
	}
	return nil
}

func (r *rotateRun) did(t Touched) { r.result.Touched = append(r.result.Touched, t) }

// valid says which tokens are, by what was written.
func (r *rotateRun) valid() string {
	if r.result.Secret == nil {
		return "nothing was changed"
	}
	deleted := 0
	for _, t := range r.result.Touched {
		if t.Outcome == apply.Deleted {
			deleted++
		}
	}
	text := fmt.Sprintf("the new token is in Secret %q, and ", r.result.Secret.Name)
	switch left := len(r.rotation.Old) - deleted; {
	case deleted == 0:
		return text + "every old one is valid too"
	case left > 0:
		return text + fmt.Sprintf("%d of %d old ones are valid too", left, len(r.rotation.Old))
	default:
		return text + "no old one is valid"
	}
}

// explain says which tokens are valid now.
func (r *rotateRun) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	valid := r.valid()
	switch {
	case ctx.Err() != nil:
		return &exit.Error{Code: exit.Failed, Next: "repeat the command to continue",
			Cause: fmt.Errorf("stopped while member token %q was being rotated; %s: %w", r.Name, valid, context.Cause(ctx))}
	case errors.Is(err, errNotYet):
		return waiting(r.what(), cmp.Or(r.next, "repair that and repeat the command; it continues"), fmt.Errorf("%w; %s", err, valid))
	default:
		return explain(r.what(), err)
	}
}
