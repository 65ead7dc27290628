package mc

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/joinfile"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// tokenTime bounds the wait for the control plane to sign a token.
const tokenTime = 5 * time.Second

// MemberTokenOptions describe the credential of one member.
type MemberTokenOptions struct {
	// Namespace is the common area.
	Namespace string
	// Name is shared by the ServiceAccount, the RoleBinding and the Secret.
	Name string
	// ClusterID is the one ID the credential may act as.
	ClusterID string
	// Manifest receives the Secret, ready to be applied in the member; nil: not
	// needed.
	Manifest Sink
	// Wait bounds the wait for the token; 0 means five seconds.
	Wait     time.Duration
	Progress Progress
}

// MemberTokenResult says what CreateMemberToken did. Secret is the leader's,
// with its token: hand it on, never print it.
type MemberTokenResult struct {
	Touched []Touched
	Secret  *corev1.Secret
	// Rebound is the ID the credential had before; its old token now acts as
	// the new ID.
	Rebound string
}

// CreateMemberToken makes the credential of one member and waits for its
// token. It changes nothing when the credential exists as asked for; on failure
// it takes back what this run made.
func CreateMemberToken(ctx context.Context, c client.Client, opts MemberTokenOptions) (MemberTokenResult, error) {
	if err := opts.check(ctx, c); err != nil {
		return MemberTokenResult{}, err
	}
	run := tokenRun{MemberTokenOptions: opts, client: c}
	err := run.make(ctx)
	if err == nil {
		return run.result, opts.writeSecret(run.result.Secret)
	}
	if back := run.undo.run(ctx); back != nil {
		err = errors.Join(err, fmt.Errorf("and what this run made is still there: %w", back))
	}
	return MemberTokenResult{}, err
}

func (o MemberTokenOptions) what() string {
	return fmt.Sprintf("cannot make member token %q for cluster %q in Namespace %q", o.Name, o.ClusterID, o.Namespace)
}

// check does everything that can refuse, before anything is written.
func (o MemberTokenOptions) check(ctx context.Context, c client.Client) error {
	if err := errors.Join(checkClusterID(o.what(), o.ClusterID), o.checkName()); err != nil {
		return err
	}
	next := fmt.Sprintf("name the Namespace of the leader controller with -n, or begin there: lockstep mc deploy leadercluster -n %s, then lockstep mc init -n %s --clusterset ID --clusterid ID", o.Namespace, o.Namespace)
	if err := needNamespace(ctx, c, o.what(), o.Namespace, next); err != nil {
		return err
	}
	taken, err := takenIDs(ctx, c, o.Namespace, o.Name)
	if err != nil {
		return explain(o.what(), err)
	}
	return refuseTaken(o.what(), o.ClusterID, taken)
}

// checkName refuses names that are no object name, and the two ServiceAccounts
// that would hand a member's identity to every Pod or to the leader itself.
func (o MemberTokenOptions) checkName() error {
	if problems := validation.IsDNS1123Subdomain(o.Name); len(problems) > 0 {
		return &refusal.Refusal{What: o.what(), Why: fmt.Sprintf("%q is no object name: %s", o.Name, problems[0]), Next: "choose another token name"}
	}
	if o.Name == "default" || o.Name == v1alpha1.ControllerServiceAccount {
		return &refusal.Refusal{
			What: o.what(),
			Why:  fmt.Sprintf("ServiceAccount %q serves this cluster and must not become the credential of a member", o.Name),
			Next: "choose another token name, such as " + o.ClusterID + "-token",
		}
	}
	return nil
}

func (o MemberTokenOptions) writeSecret(secret *corev1.Secret) error {
	if o.Manifest == nil {
		return nil
	}
	named := secret.DeepCopy()
	named.Name = o.Name // after a rotation the leader's has another
	metav1.SetMetaDataAnnotation(&named.ObjectMeta, v1alpha1.AnnotationClusterID, o.ClusterID)
	manifest, err := joinfile.RenderToken(named)
	if err == nil {
		err = o.Manifest(manifest)
	}
	if err != nil {
		return failed(fmt.Sprintf("cannot write the manifest of member token %q", o.Name),
			"the token stays; repeat the command with a file that can be written", err)
	}
	return nil
}

// tokenRun is one run of CreateMemberToken: what it did and how to take it back.
type tokenRun struct {
	MemberTokenOptions
	client client.Client
	result MemberTokenResult
	undo   undo
}

func (r *tokenRun) make(ctx context.Context) error {
	for _, step := range []func(context.Context) error{r.ensureAccount, r.ensureBinding, r.ensureSecret} {
		if err := step(ctx); err != nil {
			return explain(r.what(), err)
		}
	}
	return r.awaitToken(ctx)
}

func (r *tokenRun) awaitToken(ctx context.Context) error {
	limit := r.Wait
	if limit == 0 {
		limit = tokenTime
	}
	err := awaitSigned(ctx, r.client, r.result.Secret, limit)
	if apierrors.IsNotFound(err) {
		// A control plane that still knows only the end of an earlier account of this
		// name, such as that of a run which was undone, takes the new token for one of that.
		r.result.Touched = r.result.Touched[:len(r.result.Touched)-1]
		if err = r.ensureSecret(ctx); err == nil {
			err = awaitSigned(ctx, r.client, r.result.Secret, limit)
		}
	}
	if errors.Is(err, errNotYet) {
		return waiting(r.what(), "see that kube-controller-manager of this cluster runs and signs tokens, then repeat the command",
			fmt.Errorf("no token in Secret %q after %s", r.result.Secret.Name, limit))
	}
	return explain(r.what(), err)
}

// awaitSigned reads a token Secret until the control plane has put the token
// and its CA into it.
func awaitSigned(ctx context.Context, c client.Client, secret *corev1.Secret, limit time.Duration) error {
	return until(ctx, limit, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return false, err
		}
		return len(secret.Data[v1alpha1.TokenSecretTokenKey]) > 0 && len(secret.Data[v1alpha1.TokenSecretCAKey]) > 0, nil
	})
}
