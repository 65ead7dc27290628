package upgrade

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/upgrade"
)

// existing reads the run that is there.
func (s *shell) existing(ctx context.Context) (upgrade.Cluster, *v1alpha1.UpgradeRun, error) {
	leader, err := s.connect(ctx, s.access.Context)
	if err != nil {
		return leader, nil, err
	}
	set := s.name
	if set == "" {
		if set, err = s.clusterSet(ctx, leader); err != nil {
			return leader, nil, err
		}
	}
	run := &v1alpha1.UpgradeRun{}
	if err := leader.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: set}, run); err != nil {
		return leader, nil, &exit.Error{Code: exit.Failed, Cause: fmt.Errorf("cannot read UpgradeRun %q in Namespace %q: %w", set, s.namespace, err), Next: "begin one with: lockstep upgrade clusterset run"}
	}
	return leader, run, nil
}

func newStatus(s *shell) *cobra.Command {
	var watch bool
	command := &cobra.Command{Use: "status", Short: "Show how far the run is", Args: cobra.NoArgs,
		Example: "  lockstep upgrade clusterset status --context hub --watch"}
	command.Flags().BoolVarP(&watch, "watch", "w", false, "show each change, until the run is done")
	s.bindFormat(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		ctx := command.Context()
		seen := ""
		for {
			_, run, err := s.existing(ctx)
			if err != nil {
				return err
			}
			if run.ResourceVersion != seen {
				seen = run.ResourceVersion
				if err := s.print(run); err != nil {
					return err
				}
			}
			if !watch || run.Status.Phase == v1alpha1.PhaseDone {
				return nil
			}
			select {
			case <-ctx.Done():
				return nil // to end it is the way a watch ends
			case <-time.After(time.Second):
			}
		}
	}
	return command
}

// steer changes the spec of the run; somebody else writing it meanwhile is met by
// another try.
func (s *shell) steer(ctx context.Context, change func(upgrade.Cluster, *v1alpha1.UpgradeRun) error) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		leader, run, err := s.existing(ctx)
		if err != nil {
			return err
		}
		if err := change(leader, run); err != nil {
			return err
		}
		return leader.Update(ctx, run)
	})
}

func newApprove(s *shell) *cobra.Command {
	var digest string
	command := &cobra.Command{Use: "approve STEP", Short: "Say yes to a step, as it is shown", Args: oneStep,
		Long: `Say yes to a step, as it is shown. The yes holds for what the step would change now:
should it be something else when its turn comes, another approval is asked for.`,
		Example: "  lockstep upgrade clusterset approve leader --context hub"}
	command.Flags().StringVar(&digest, "digest", "", "`digest` of what was looked at; default is what the status shows now")
	command.RunE = func(command *cobra.Command, args []string) error {
		ctx := command.Context()
		var approved v1alpha1.Approval
		err := s.steer(ctx, func(leader upgrade.Cluster, run *v1alpha1.UpgradeRun) error {
			var err error
			if approved, err = approval(run, args[0], digest); err != nil {
				return err
			}
			review := &authenticationv1.SelfSubjectReview{}
			if err := leader.Create(ctx, review); err == nil {
				approved.By, approved.At = review.Status.UserInfo.Username, review.CreationTimestamp
			}
			run.Spec.Approvals = append(slices.DeleteFunc(run.Spec.Approvals, func(a v1alpha1.Approval) bool { return a.Step == args[0] }), approved)
			return nil
		})
		if err == nil {
			fmt.Fprintf(s.Out, "step %s approved as %s\n", approved.Step, approved.Digest)
		}
		return err
	}
	return command
}

// oneStep demands the name of one step.
func oneStep(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return exit.Usagef("name the STEP; lockstep upgrade clusterset status lists them")
	case len(args) > 1:
		return exit.Usagef("one STEP at a time is approved: %q is too many", args[1])
	}
	return nil
}

// approval is the yes to one step of a run.
func approval(run *v1alpha1.UpgradeRun, id, digest string) (v1alpha1.Approval, error) {
	i := slices.IndexFunc(run.Status.Steps, func(step v1alpha1.StepStatus) bool { return step.ID == id })
	what := fmt.Sprintf("cannot approve step %q", id)
	if i < 0 {
		var ids []string
		for _, step := range run.Status.Steps {
			ids = append(ids, step.ID)
		}
		return v1alpha1.Approval{}, exit.Usagef("%s: there is no such step; there are %v", what, ids)
	}
	step := run.Status.Steps[i]
	switch {
	case step.Digest == "":
		return v1alpha1.Approval{}, &refusal.Refusal{What: what, Why: "it would change nothing now", Next: "look again when its turn has come: lockstep upgrade clusterset status"}
	case digest != "" && digest != step.Digest:
		return v1alpha1.Approval{}, &refusal.Refusal{What: what, Why: fmt.Sprintf("it would change something else by now than %s", digest), Next: "look at it again, and approve " + step.Digest}
	}
	return v1alpha1.Approval{Step: id, Digest: step.Digest, At: metav1.Time{}}, nil
}

func newPause(s *shell) *cobra.Command {
	return newSwitch(s, "pause", "Change nothing any more; go on looking", true)
}
func newResume(s *shell) *cobra.Command { return newSwitch(s, "resume", "Go on", false) }

func newSwitch(s *shell, verb, short string, paused bool) *cobra.Command {
	return &cobra.Command{Use: verb, Short: short, Args: cobra.NoArgs, Example: "  lockstep upgrade clusterset " + verb + " --context hub",
		RunE: func(command *cobra.Command, _ []string) error {
			err := s.steer(command.Context(), func(_ upgrade.Cluster, run *v1alpha1.UpgradeRun) error {
				run.Spec.Policy.Paused = paused
				return nil
			})
			if err == nil {
				fmt.Fprintf(s.Out, "run %sd\n", verb)
			}
			return err
		}}
}
