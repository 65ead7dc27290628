package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/migration"
)

// policyOf reads the policy of a run, and of its journal what was agreed.
func policyOf(run *v1alpha1.UpgradeRun) rollout.Policy {
	p := rollout.Policy{
		Approve: run.Spec.Policy.Approve, Canary: run.Spec.Policy.Canary, Paused: run.Spec.Policy.Paused,
		MaxConcurrent: int(run.Spec.Policy.MaxConcurrent), Approved: map[string]string{}, Agreed: map[string]string{},
	}
	for _, a := range run.Spec.Approvals {
		p.Approved[a.Step] = a.Digest
	}
	for _, e := range run.Status.Journal {
		if step, ok := strings.CutPrefix(e.Key, rollout.AgreedPrefix); ok {
			p.Agreed[step] = e.Value
		}
	}
	return p
}

// report writes the status, if it has changed, before anything is done about it.
func (d *Driver) report(ctx context.Context, run *v1alpha1.UpgradeRun, o migration.Observed, decision rollout.Decision) error {
	now, ok := o.Evidence.Leader.Now.Get()
	if !ok {
		return fmt.Errorf("cannot report: the time of the leader is not known: %s", o.Evidence.Leader.Now.Problem())
	}
	wanted := run.DeepCopy()
	Describe(wanted, decision)
	remember(&wanted.Status, decision.Record(), metav1.NewTime(now))
	d.tell(&wanted.Status, decision, metav1.NewTime(now))
	if over := len(wanted.Status.History) - historyKept; over > 0 {
		wanted.Status.History = wanted.Status.History[over:]
	}
	if d.Report != nil {
		d.Report(decision)
	}
	if equality.Semantic.DeepEqual(run.Status, wanted.Status) {
		return nil
	}
	if err := d.Leader.Status().Update(ctx, wanted); err != nil {
		return fmt.Errorf("cannot report to UpgradeRun %q: %w", d.Run, err)
	}
	*run = *wanted
	return nil
}

const historyKept = 500

// tell adds what is about to be changed to the history, unless that is what it ends
// with already: a change that is tried again and again would push out all others.
func (d *Driver) tell(status *v1alpha1.UpgradeRunStatus, decision rollout.Decision, now metav1.Time) {
	var entries []v1alpha1.HistoryEntry
	for _, step := range decision.Act() {
		for _, change := range step.Changes {
			entries = append(entries, v1alpha1.HistoryEntry{At: now, By: d.Identity, Step: step.ID, What: change.String()})
		}
	}
	last := status.History[max(0, len(status.History)-len(entries)):]
	if !slices.EqualFunc(last, entries, func(a, b v1alpha1.HistoryEntry) bool { return a.By == b.By && a.Step == b.Step && a.What == b.What }) {
		status.History = append(status.History, entries...)
	}
}

var phases = map[rollout.State]v1alpha1.UpgradePhase{
	rollout.Ready: v1alpha1.PhaseRunning, rollout.Waiting: v1alpha1.PhaseWaiting, rollout.NeedsApproval: v1alpha1.PhaseNeedsApproval,
	rollout.Refused: v1alpha1.PhaseRefused, rollout.Paused: v1alpha1.PhasePaused, rollout.Done: v1alpha1.PhaseDone,
	rollout.Pending: v1alpha1.PhaseWaiting,
}

// Describe puts a decision into the status of a run.
func Describe(run *v1alpha1.UpgradeRun, decision rollout.Decision) {
	status := &run.Status
	done, total := decision.Count()
	status.ObservedGeneration, status.Digest, status.Message = run.Generation, decision.Digest, decision.Message()
	status.Phase, status.StepsDone, status.StepsTotal = phases[decision.Phase], int32(done), int32(total)
	status.Steps, status.Findings = nil, nil
	for _, s := range decision.Steps {
		step := v1alpha1.StepStatus{ID: s.ID, Title: s.Title, State: string(s.State), Message: s.Why}
		for _, c := range s.Changes {
			step.Changes = append(step.Changes, c.String())
		}
		if len(s.Changes) > 0 {
			step.Digest = s.Digest()
		}
		status.Steps = append(status.Steps, step)
	}
	for _, f := range decision.Findings() {
		status.Findings = append(status.Findings, v1alpha1.Finding{Rule: f.Rule, Severity: f.Severity.String(), Cluster: f.Cluster, Message: f.Message, Remedy: f.Remedy})
	}
	condition := metav1.Condition{Type: v1alpha1.ConditionDone, Status: metav1.ConditionFalse, Reason: string(status.Phase), Message: status.Message, ObservedGeneration: run.Generation}
	if decision.Phase == rollout.Done {
		condition.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}

// remember puts entries into the journal; an empty value takes one out.
func remember(status *v1alpha1.UpgradeRunStatus, entries []rollout.Entry, now metav1.Time) {
	for _, e := range entries {
		i := slices.IndexFunc(status.Journal, func(j v1alpha1.JournalEntry) bool { return j.Key == e.Key })
		fresh := v1alpha1.JournalEntry{Key: e.Key, Value: e.Value, At: now}
		switch {
		case i >= 0 && e.Value == "":
			status.Journal = slices.Delete(status.Journal, i, i+1)
		case i >= 0:
			status.Journal[i] = fresh
		case e.Value != "":
			status.Journal = append(status.Journal, fresh)
		}
	}
}

func journalOf(run *v1alpha1.UpgradeRun) map[string]migration.Remembered {
	journal := map[string]migration.Remembered{}
	for _, e := range run.Status.Journal {
		journal[e.Key] = migration.Remembered{Value: e.Value, At: e.At.Time}
	}
	return journal
}
