package mc

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// InitOptions describe the ClusterSet a leader is to have.
type InitOptions struct {
	// Namespace is the common area; it must exist.
	Namespace string
	// ClusterSet is the ClusterSet ID, and the object's name.
	ClusterSet string
	// ClusterID is the leader's own.
	ClusterID string

	// JoinConfig receives the join config for members; nil: none is needed.
	JoinConfig Sink
	// LeaderAPIServer is the URL members are told; needed for the join config only.
	LeaderAPIServer string
	// AllowLoopback accepts a URL that only this machine can use.
	AllowLoopback bool

	// Wait bounds the wait for the leader controller; 0 does not wait.
	Wait     time.Duration
	Progress Progress
}

// InitResult says what Init did.
type InitResult struct {
	ClusterSet Touched
}

// Init makes the ClusterSet of a leader, writes the join config for members,
// and waits until the leader controller has taken the ClusterSet up. Equal
// arguments may be repeated at any time (WK-65).
func Init(ctx context.Context, c client.Client, opts InitOptions) (InitResult, error) {
	if err := opts.validate(); err != nil {
		return InitResult{}, err
	}
	if err := needNamespace(ctx, c, opts.what(), opts.Namespace, opts.installHint()); err != nil {
		return InitResult{}, err
	}
	set, outcome, err := opts.ensureSet(ctx, c)
	if err != nil {
		return InitResult{}, explain(opts.what(), err)
	}
	result := InitResult{Touched{Kind: kindClusterSet, Namespace: set.Namespace, Name: set.Name, Outcome: outcome}}
	if opts.JoinConfig != nil {
		if err := opts.JoinConfig(joinConfigOf(set, opts.LeaderAPIServer).Render()); err != nil {
			return result, opts.fileFailed(err)
		}
	}
	return result, opts.awaitLeader(ctx, c)
}

func (o InitOptions) what() string {
	return fmt.Sprintf("cannot make ClusterSet %q in Namespace %q", o.ClusterSet, o.Namespace)
}

func (o InitOptions) installHint() string {
	return fmt.Sprintf("install the leader controller there; it begins with: kubectl create namespace %s", o.Namespace)
}

func (o InitOptions) validate() error {
	problems := []error{
		checkClusterSetID(o.what(), o.ClusterSet),
		checkClusterID(o.what(), o.ClusterID),
	}
	if o.JoinConfig != nil {
		what := fmt.Sprintf("cannot write a join config for ClusterSet %q", o.ClusterSet)
		problems = append(problems, checkServer(what, o.LeaderAPIServer, o.AllowLoopback))
	}
	return errors.Join(problems...)
}

func (o InitOptions) wanted() *v1alpha2.ClusterSet {
	return &v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: o.ClusterSet, Namespace: o.Namespace},
		Spec: v1alpha2.ClusterSetSpec{
			ClusterID: o.ClusterID,
			Leaders:   []v1alpha2.LeaderCluster{{ClusterID: o.ClusterID}},
			Namespace: o.Namespace,
		},
	}
}

func (o InitOptions) ensureSet(ctx context.Context, c client.Client) (*v1alpha2.ClusterSet, Outcome, error) {
	present, err := onlySet(ctx, c, o.what(), o.Namespace)
	if err != nil {
		return nil, "", err
	}
	wanted := o.wanted()
	if present == nil {
		return wanted, apply.Created, c.Create(ctx, wanted)
	}
	if present.Name != wanted.Name || !sameLeader(present, wanted) {
		return nil, "", o.differs(present)
	}
	return present, apply.Unchanged, nil
}

// sameLeader compares what a leader's ClusterSet says. spec.namespace is not
// compared when absent: the leader controller never reads it.
func sameLeader(present, wanted *v1alpha2.ClusterSet) bool {
	return present.Spec.ClusterID == wanted.Spec.ClusterID && leaderOf(present) == leaderOf(wanted) &&
		(present.Spec.Namespace == "" || present.Spec.Namespace == wanted.Spec.Namespace)
}

func (o InitOptions) differs(present *v1alpha2.ClusterSet) error {
	return &refusal.Refusal{
		What: o.what() + fmt.Sprintf(" for leader %q", o.ClusterID),
		Why: fmt.Sprintf("the Namespace has ClusterSet %q of cluster %q with leader %q",
			present.Name, present.Spec.ClusterID, leaderOf(present).ClusterID),
		Next: "repeat the command with the present names, choose another Namespace, or end the present one first: lockstep mc destroy",
		Rule: "ADM-CS-1",
	}
}

func (o InitOptions) fileFailed(err error) error {
	return failed(fmt.Sprintf("cannot write the join config of ClusterSet %q", o.ClusterSet),
		"the ClusterSet stays; repeat the command with a file that can be written", err)
}

func (o InitOptions) awaitLeader(ctx context.Context, c client.Client) error {
	if o.Wait == 0 {
		return nil
	}
	o.Progress.sayf("waiting up to %s for the leader controller in Namespace %q", o.Wait, o.Namespace)
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.ClusterSet}
	err := until(ctx, o.Wait, func(ctx context.Context) (bool, error) {
		var set v1alpha2.ClusterSet
		if err := c.Get(ctx, key, &set); err != nil {
			return false, err
		}
		return set.Status.ObservedGeneration > 0 && set.Status.ObservedGeneration >= set.Generation, nil
	})
	what := fmt.Sprintf("ClusterSet %q is stored, but no leader controller has taken it up", o.ClusterSet)
	if errors.Is(err, errNotYet) {
		next := fmt.Sprintf("see that the leader controller runs (kubectl -n %s get pods), then repeat the command", o.Namespace)
		return waiting(what, next, fmt.Errorf("its status was not written within %s", o.Wait))
	}
	return explain(what, err)
}
