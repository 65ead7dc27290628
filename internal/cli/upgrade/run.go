package upgrade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/install"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/migration"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
	"github.com/lockstep-dev/lockstep/internal/upgrade"
)

// wanted are the flags that make or change the spec of a run.
type wanted struct {
	members, canary, approve, override []string
	memberNamespace, image             string
	atOnce                             int32
}

func (w *wanted) bind(flags *pflag.FlagSet) {
	flags.StringSliceVar(&w.members, "members", nil, "kubeconfig `contexts` of all members, separated by commas; NAME=TOKEN names the credential a member gets")
	flags.StringVar(&w.memberNamespace, "member-namespace", "", "`namespace` of the member controllers; default kube-system")
	flags.StringVar(&w.image, "image", "", "`image` of the controllers, with its tag; none leaves controllers as they are")
	flags.StringSliceVar(&w.canary, "canary", nil, "`contexts` of members that go first")
	flags.Int32Var(&w.atOnce, "max-concurrent", 0, "how many members are changed at once; 0 means 1")
	flags.StringSliceVar(&w.approve, "ask", nil, "`steps` that wait for an approval, such as leader, upgrade, delete")
	flags.StringSliceVar(&w.override, "override", nil, "ids of `rules` whose refusal is put up with; docs/upgrade.md lists those that can be")
}

// into changes what was asked for and leaves the rest.
func (w *wanted) into(spec *v1alpha1.UpgradeRunSpec, flags *pflag.FlagSet) error {
	for _, id := range w.override {
		if _, ok := migration.Overridable[id]; !ok {
			return &refusal.Refusal{What: fmt.Sprintf("cannot override %s", id), Why: "nobody can go on against this rule without losing what members export",
				Next: "do what it asks for: lockstep explain " + id, Rule: id}
		}
	}
	if flags.Changed("member-namespace") && !flags.Changed("members") {
		return exit.Usagef("--member-namespace says where the controllers of --members are; give both")
	}
	if flags.Changed("members") {
		spec.ClusterSet.Members = nil
		for _, m := range w.members {
			name, token, _ := strings.Cut(m, "=")
			spec.ClusterSet.Members = append(spec.ClusterSet.Members, v1alpha1.MemberAccess{Context: name, Token: token, Namespace: w.memberNamespace})
		}
	}
	set := func(flag string, change func()) {
		if flags.Changed(flag) {
			change()
		}
	}
	set("image", func() { spec.Image = w.image })
	set("canary", func() { spec.Policy.Canary = w.canary })
	set("max-concurrent", func() { spec.Policy.MaxConcurrent = w.atOnce })
	set("ask", func() { spec.Policy.Approve = w.approve })
	set("override", func() { spec.Policy.Override = w.override })
	for _, canary := range spec.Policy.Canary {
		if !slices.ContainsFunc(spec.ClusterSet.Members, func(m v1alpha1.MemberAccess) bool { return m.Context == canary }) {
			return exit.Usagef("canary %q is none of the members", canary)
		}
	}
	return nil
}

// contexts are the members that the flags name.
func (w *wanted) contexts() []string {
	var all []string
	for _, m := range w.members {
		name, _, _ := strings.Cut(m, "=")
		all = append(all, name)
	}
	return all
}

func newPlan(s *shell) *cobra.Command {
	var w wanted
	command := &cobra.Command{
		Use: "plan --members CONTEXTS", Short: "Show what a run would do, and change nothing", Args: cobra.NoArgs,
		Example: "  lockstep upgrade clusterset plan --context hub --members east,west --image registry.example.com/lockstep:v1.2",
	}
	w.bind(command.Flags())
	s.bindFormat(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		driver, run, err := s.open(command.Context(), &w, command.Flags())
		if err != nil {
			return err
		}
		decision := driver.Look(command.Context(), run)
		upgrade.Describe(run, decision)
		if err := s.print(run); err != nil {
			return err
		}
		if decision.Phase == rollout.Refused {
			return refused(decision)
		}
		return nil
	}
	return command
}

func newRun(s *shell) *cobra.Command {
	var w wanted
	var wait time.Duration
	command := &cobra.Command{
		Use: "run [--members CONTEXTS]", Short: "Drive the run until it is done, or until somebody else has to do something", Args: cobra.NoArgs,
		Example: "  lockstep upgrade clusterset run --context hub --members east,west --canary east --ask leader,delete",
	}
	w.bind(command.Flags())
	command.Flags().DurationVar(&wait, "wait", 0, "stop after so long; 0 goes on until the end")
	s.bindFormat(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		ctx := command.Context()
		driver, run, err := s.open(ctx, &w, command.Flags())
		if err != nil {
			return err
		}
		if err := s.store(ctx, driver, run); err != nil {
			return err
		}
		if wait > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, wait)
			defer cancel()
		}
		decision, err := driver.Drive(ctx)
		return s.ended(command.Context(), driver, decision, err)
	}
	return command
}

// ended says how a drive ended, and with which code.
func (s *shell) ended(ctx context.Context, driver *upgrade.Driver, decision rollout.Decision, err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &exit.Error{Code: exit.Waiting, Cause: fmt.Errorf("the run is not done in that time: %s", decision.Message()), Next: "repeat the command to go on"}
	case errors.Is(err, context.Canceled):
		return &exit.Error{Code: exit.Failed, Cause: errors.New("stopped; a step may be half made"), Next: "repeat the command; it finishes what was begun"}
	case err != nil:
		return err
	}
	run := &v1alpha1.UpgradeRun{}
	if err := driver.Leader.Get(ctx, driver.Run, run); err == nil {
		_ = s.print(run)
	}
	switch decision.Phase {
	case rollout.Refused:
		return refused(decision)
	case rollout.NeedsApproval:
		return &exit.Error{Code: exit.Waiting, Cause: errors.New(decision.Message()), Next: "approve it with: lockstep upgrade clusterset approve STEP, then repeat the command"}
	case rollout.Paused:
		return &exit.Error{Code: exit.Waiting, Cause: errors.New("the run is paused"), Next: "go on with: lockstep upgrade clusterset resume, then repeat the command"}
	}
	return nil
}

func refused(decision rollout.Decision) error {
	for _, step := range decision.Steps {
		if step.State != rollout.Refused {
			continue
		}
		for _, f := range step.Findings {
			if f.Severity == rule.Refuse {
				return &refusal.Refusal{What: fmt.Sprintf("cannot go on with step %q", step.ID), Why: f.Message, Next: f.Remedy, Rule: f.Rule}
			}
		}
	}
	return &refusal.Refusal{What: "cannot go on", Why: decision.Message()}
}

// open finds the ClusterSet and the run, as flags want it to be. Nothing is
// written.
func (s *shell) open(ctx context.Context, w *wanted, flags *pflag.FlagSet) (*upgrade.Driver, *v1alpha1.UpgradeRun, error) {
	if w.atOnce < 0 {
		return nil, nil, exit.Usagef("--max-concurrent %d is negative; 0 means 1", w.atOnce)
	}
	leader, err := s.connect(ctx, s.access.Context)
	if err != nil {
		return nil, nil, err
	}
	set, err := s.clusterSet(ctx, leader)
	if err != nil {
		return nil, nil, err
	}
	run, err := s.find(ctx, leader, set)
	if err != nil {
		return nil, nil, err
	}
	if run == nil {
		if !flags.Changed("members") {
			return nil, nil, exit.Usagef("there is no UpgradeRun %q yet; name the contexts of all members with --members", s.runName(set))
		}
		run = &v1alpha1.UpgradeRun{ObjectMeta: metav1.ObjectMeta{Name: s.runName(set), Namespace: s.namespace}}
		run.Spec.ClusterSet = &v1alpha1.ClusterSetTarget{Name: set}
	}
	if err := w.into(&run.Spec, flags); err != nil {
		return nil, nil, err
	}
	if err := s.access.Known(w.contexts()); err != nil {
		return nil, nil, err
	}
	driver := &upgrade.Driver{
		Run: client.ObjectKeyFromObject(run), Leader: leader, Identity: identity(), Connect: s.members(ctx),
		Report: s.progress(), Log: func(err error) { fmt.Fprintln(s.ErrOut, "looking again after:", err) },
	}
	return driver, run, nil
}

func (s *shell) runName(set string) string {
	if s.name != "" {
		return s.name
	}
	return set
}

func (s *shell) clusterSet(ctx context.Context, leader upgrade.Cluster) (string, error) {
	var sets v1alpha2.ClusterSetList
	what := fmt.Sprintf("cannot find the ClusterSet in Namespace %q", s.namespace)
	if err := leader.List(ctx, &sets, client.InNamespace(s.namespace)); err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	switch {
	case len(sets.Items) != 1:
		return "", &refusal.Refusal{What: what, Why: fmt.Sprintf("there are %d of them", len(sets.Items)), Next: "name the leader cluster with --context and its common area with -n"}
	case len(sets.Items[0].Spec.Leaders) > 0 && sets.Items[0].Spec.Leaders[0].Server != "":
		return "", &refusal.Refusal{What: what, Why: "that is the Namespace of a member", Next: "name the leader cluster with --context and its common area with -n"}
	}
	return sets.Items[0].Name, nil
}

// find returns nil when there is no such run, or no such kind yet.
func (s *shell) find(ctx context.Context, leader upgrade.Cluster, set string) (*v1alpha1.UpgradeRun, error) {
	run := &v1alpha1.UpgradeRun{}
	err := leader.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: s.runName(set)}, run)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read UpgradeRun %q: %w", s.runName(set), err)
	}
	if run.Spec.ClusterSet == nil || run.Spec.ClusterSet.Name != set {
		return nil, &refusal.Refusal{What: fmt.Sprintf("cannot use UpgradeRun %q", run.Name), Why: "it is not about ClusterSet " + set, Next: "choose another with --name"}
	}
	return run, nil
}

// store makes the kind and the run, or changes its spec.
func (s *shell) store(ctx context.Context, driver *upgrade.Driver, run *v1alpha1.UpgradeRun) error {
	crds, err := config.FleetCRDs()
	if err != nil {
		return err
	}
	if _, err := install.Apply(ctx, driver.Leader, crds, install.Options{}); err != nil {
		return err
	}
	if run.ResourceVersion == "" {
		err = driver.Leader.Create(ctx, run)
	} else {
		err = driver.Leader.Update(ctx, run)
	}
	if err != nil {
		return fmt.Errorf("cannot write UpgradeRun %q: %w", run.Name, err)
	}
	return nil
}

func (s *shell) connect(ctx context.Context, name string) (upgrade.Cluster, error) {
	access := s.access
	access.Context = name
	connection, err := access.Connect(s.ErrOut, 0)
	if err != nil {
		return upgrade.Cluster{}, err
	}
	return upgrade.Cluster{WithWatch: connection.Watching, Kubernetes: func(context.Context) (string, error) {
		version, err := connection.Kinds.ServerVersion()
		if err != nil {
			return "", err
		}
		return version.GitVersion, nil
	}}, nil
}

// members connects to each member once.
func (s *shell) members(ctx context.Context) func(string) (upgrade.Cluster, error) {
	var mu sync.Mutex
	known := map[string]upgrade.Cluster{}
	return func(name string) (upgrade.Cluster, error) {
		mu.Lock()
		defer mu.Unlock()
		if c, ok := known[name]; ok {
			return c, nil
		}
		c, err := s.connect(ctx, name)
		if err == nil {
			known[name] = c
		}
		return c, err
	}
}

// identity is who drives, for others to read.
func identity() string {
	name, host := "somebody", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return fmt.Sprintf("%s@%s (process %d)", name, host, os.Getpid())
}
