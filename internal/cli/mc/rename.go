package mc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/rename"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// RenameOptions say which member gets which ID.
type RenameOptions struct {
	Old, New string
	// Token is the name of the new credential; "" is NEW-token.
	Token string
	// Clusters are the leader, the member and all other members.
	Clusters []RenameCluster
	// Unseen are members that nobody looks at.
	Unseen []string
	// ClusterSet that is meant; "" when the clusters hold only one.
	ClusterSet string
	// Limit is how long one cluster may take to answer; 0 means 15 seconds.
	Limit time.Duration
	// Wait bounds the whole; 0 looks once.
	Wait   time.Duration
	DryRun bool
	// Report hears of each decision; nil hears nothing.
	Report func(rollout.Decision)
}

// RenameCluster is one cluster as its administrator reaches it.
type RenameCluster struct {
	evidence.Cluster
	// Writer is the client of the same connection; nil where that failed.
	Writer client.Client
}

// RenameResult is what a rename did, or would do: JSON and the page are written
// from it.
type RenameResult struct {
	ClusterSet string `json:"clusterSet"`
	Old        string `json:"from"`
	New        string `json:"to"`
	rollout.Decision
	Findings []rule.Finding `json:"findings"`
}

// Rename gives a member another cluster ID while it runs, and while every other
// member keeps what it imports from it. All that it has to remember stands on
// objects; a run that was stopped anywhere is continued by the next one.
func Rename(ctx context.Context, opts RenameOptions) (RenameResult, error) {
	r := &renameRun{RenameOptions: opts}
	if r.Limit == 0 {
		r.Limit = 15 * time.Second
	}
	if r.Token == "" {
		r.Token = r.New + "-token"
	}
	var result RenameResult
	missing := "it has not begun"
	err := until(ctx, max(r.Wait, lookAgain), func(ctx context.Context) (bool, error) {
		decision, set, err := r.step(ctx)
		if err != nil {
			return false, err
		}
		result = RenameResult{ClusterSet: set, Old: r.Old, New: r.New, Decision: decision, Findings: append([]rule.Finding{}, decision.Findings()...)}
		missing = decision.Message()
		if r.Report != nil {
			r.Report(decision)
		}
		return r.ended(decision)
	})
	if errors.Is(err, errNotYet) {
		return result, waiting(r.what(), "repeat the command to go on", fmt.Errorf("it is not done after %s: %s", r.Wait, missing))
	}
	return result, explain(r.what(), err)
}

type renameRun struct {
	RenameOptions
	looked bool // all clusters could be read once
}

func (r *renameRun) what() string { return fmt.Sprintf("cannot rename member %q to %q", r.Old, r.New) }

// step is one look and what follows from it.
func (r *renameRun) step(ctx context.Context) (decision rollout.Decision, set string, err error) {
	seen, err := r.observe(ctx)
	if err != nil {
		return decision, "", err
	}
	if err := r.lookOnce(ctx, seen.Parts); err != nil {
		return decision, "", err
	}
	decision, set = decideRename(seen), seen.Parts.ClusterSet
	if r.DryRun {
		return decision, set, nil
	}
	for _, step := range decision.Act() {
		if step.Grave {
			again, err := r.observe(ctx)
			if err != nil || decideRename(again).Digest != decision.Digest {
				return decision, set, err // the world has moved: what was decided is worth nothing
			}
		}
		if err := r.act(ctx, seen, step.Step); err != nil && !apply.IsStale(err) {
			return decision, set, err
		}
	}
	return decision, set, nil
}

// lookOnce refuses to begin while a cluster cannot be read. One that goes away later
// is waited for.
func (r *renameRun) lookOnce(ctx context.Context, parts preflight.Parts) error {
	if r.looked {
		return nil
	}
	for _, part := range parts.Members {
		if part.Unreachable != "" {
			if c, err := r.at(part.Context); err == nil {
				if lacking := mayLook(ctx, c); lacking != nil {
					return explain(r.what(), lacking)
				}
			}
			return failed(r.what(), "see that all clusters can be reached from here, then repeat the command",
				fmt.Errorf("context %q cannot be read: %s", part.Context, part.Unreachable))
		}
	}
	if why := parts.Leader.Unreachable; why != "" {
		return failed(r.what(), "name the context of the leader, too, with --contexts", errors.New(why))
	}
	r.looked = true
	return nil
}

func decideRename(seen rename.Observed) rollout.Decision {
	return rollout.Decide(rename.Plan(seen), rollout.Policy{})
}

// ended tells whether there is nothing more to do. What could not be read is looked
// for again: a cluster that is away for a moment must not end a rename half-way.
func (r *renameRun) ended(decision rollout.Decision) (bool, error) {
	if decision.Phase == rollout.Refused {
		for _, f := range decision.Findings() {
			if f.Severity == rule.Refuse && !f.Unknown {
				return true, &refusal.Refusal{What: r.what(), Why: f.Message, Next: f.Remedy, Rule: f.Rule}
			}
		}
	}
	return decision.Phase == rollout.Done || r.DryRun, nil
}

// observe reads what the rename depends on, all of it anew.
func (r *renameRun) observe(ctx context.Context) (rename.Observed, error) {
	clusters := make([]evidence.Cluster, len(r.Clusters))
	for i := range r.Clusters {
		clusters[i] = r.Clusters[i].Cluster
	}
	read, err := evidence.Read(ctx, clusters, evidence.Options{ClusterSet: r.ClusterSet, Limit: r.Limit})
	if err != nil {
		return rename.Observed{}, &exit.Error{Code: exit.Usage, Cause: err} // the contexts do not make one ClusterSet
	}
	seen := rename.Observed{Old: r.Old, New: r.New, Account: r.Token, Evidence: read.Evidence, Parts: read.Parts, Unseen: r.Unseen}
	r.observeCredentials(ctx, &seen)
	r.observeMembers(ctx, &seen)
	return seen, nil
}

// at is the client of a context.
func (r *renameRun) at(context string) (client.Client, error) {
	for _, c := range r.Clusters {
		if c.Context == context && c.Writer != nil {
			return c.Writer, nil
		}
	}
	return nil, fmt.Errorf("no context %q could be used", context)
}
