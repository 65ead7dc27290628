// Package roster keeps the list of members: it answers their announces, tells
// who is alive, and takes back what a leaving member had exported.
package roster

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/metrics"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// Reconciler has one key, its Namespace: a common area serves one ClusterSet.
type Reconciler struct {
	Client client.Client
	// Uncached reads ClusterClaims, a legacy kind not worth a watch, and what a
	// departing member had exported.
	Uncached     client.Reader
	Events       events.EventRecorder
	Namespace    string
	ClaimsServed bool
	// Merged returns those of the clusters all of whose exports are merged.
	Merged func(ctx context.Context, clusters []string) (map[string]bool, error)
	// Conflicts returns the clusters that claim addresses which others claim as
	// well, with a sentence for each; NetworkChanged lets pass what that depends on.
	Conflicts      func(ctx context.Context, area string) (map[string]string, error)
	NetworkChanged predicate.Predicate
	// Periods say what silence means; LookAgain is how often that is checked at
	// least. Election names the Lease by which the leader hears itself.
	Periods   clusterset.Periods
	Election  string
	LookAgain time.Duration
	Now       func() time.Time
	Meter     *metrics.Leader

	ear ear
}

// SetupWithManager registers the loop.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	key := reconcile.Request{}
	key.Namespace = r.Namespace
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{key} })
	return ctrl.NewControllerManagedBy(mgr).Named("roster").WithOptions(options).
		Watches(&v1alpha2.ClusterSet{}, one).
		Watches(&v1alpha1.MemberClusterAnnounce{}, one).
		Watches(&v1alpha1.ResourceImport{}, one, builder.WithPredicates(predicate.Or(r.NetworkChanged, lossChanged()))).
		Watches(&coordinationv1.Lease{}, r.listen(key)).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(key)
			return nil
		})).
		Complete(r)
}

type observed struct {
	set       *v1alpha2.ClusterSet // that this area serves; nil when there is none
	surplus   []*v1alpha2.ClusterSet
	problem   *clusterset.Problem
	members   []v1alpha1.MemberClusterAnnounce // alive, of this set
	departing []v1alpha1.MemberClusterAnnounce // being deleted, of any set
	conflicts map[string]string                // clusters whose addresses are claimed twice
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	seen, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	failures, again := []error{r.dismiss(ctx, seen)}, ctrl.Result{RequeueAfter: r.LookAgain}
	var receipts clusterset.Receipts
	if seen.set != nil {
		view := r.judge(seen)
		receipts, again.RequeueAfter = view.receipts, view.next
		waiting, err := r.acknowledge(ctx, seen, view.silences)
		if waiting { // for merges of which no event tells this loop
			again.RequeueAfter = min(again.RequeueAfter, r.LookAgain/10)
		}
		failures = append(failures, err, r.report(ctx, seen, view), r.tellLoss(ctx, seen, view), r.cleanUp(ctx, seen, view))
	} else {
		failures = append(failures, r.sayLoss(ctx, clusterset.LossSetting{}, func(v1alpha1.MemberLoss) []string { return nil }))
	}
	r.Meter.Roster(seen.members, receipts)
	return apply.Result(again, errors.Join(failures...))
}

func (r *Reconciler) observe(ctx context.Context) (observed, error) {
	var sets v1alpha2.ClusterSetList
	if err := r.Client.List(ctx, &sets, client.InNamespace(r.Namespace)); err != nil {
		return observed{}, err
	}
	var seen observed
	seen.set, seen.surplus = clusterset.ServingOf(sets)
	var announces v1alpha1.MemberClusterAnnounceList
	if err := r.Client.List(ctx, &announces, client.InNamespace(r.Namespace)); err != nil {
		return observed{}, err
	}
	for _, a := range announces.Items {
		if !a.DeletionTimestamp.IsZero() {
			seen.departing = append(seen.departing, a)
		}
	}
	if seen.set != nil {
		seen.members = clusterset.Members(seen.set, announces.Items)
	}
	var err error
	if seen.conflicts, err = r.Conflicts(ctx, r.Namespace); err != nil {
		return seen, err
	}
	return seen, r.check(ctx, &seen)
}

// check resolves the leader's own cluster ID (LDR-CS-1, API-LEG-2).
func (r *Reconciler) check(ctx context.Context, seen *observed) error {
	if seen.set == nil {
		return nil
	}
	var claims v1alpha2.ClusterClaimList
	if r.ClaimsServed && seen.set.Spec.ClusterID == "" {
		if err := r.Uncached.List(ctx, &claims, client.InNamespace(r.Namespace)); err != nil {
			return err
		}
	}
	id, problem := clusterset.ResolveID(seen.set, claims.Items)
	if seen.problem = problem; problem != nil {
		return nil
	}
	if leader := seen.set.Spec.Leaders[0].ClusterID; leader != id {
		seen.problem = &clusterset.Problem{Reason: clusterset.ReasonInvalid, Message: fmt.Sprintf(
			"ClusterSet %q says this cluster is %q but its leader is %q; the leader's ClusterSet must name itself in spec.leaders[0].clusterID", seen.set.Name, id, leader)}
	}
	if seen.set.Spec.ClusterID == "" {
		next := seen.set.DeepCopy()
		next.Spec.ClusterID = id
		_, err := apply.Change(ctx, r.Client, seen.set, next)
		return err
	}
	return nil
}

// acknowledge answers every member of the set (LDR-MS-1), and tells those that
// have published everything when all of it is merged. waiting tells that some
// are still to be told.
func (r *Reconciler) acknowledge(ctx context.Context, seen observed, silences map[string]clusterset.Silence) (waiting bool, err error) {
	if seen.problem != nil {
		return false, nil
	}
	answers := make([]*v1alpha1.MemberClusterAnnounce, len(seen.members))
	var published []string
	_, wire := clusterset.Peers(seen.members)
	for i := range seen.members {
		answers[i] = clusterset.Acknowledge(&seen.members[i], seen.set, wire)
		clusterset.NoteSilence(answers[i], silences[answers[i].ClusterID])
		if clusterset.AwaitsMerge(answers[i]) {
			published = append(published, answers[i].ClusterID)
		}
	}
	var merged map[string]bool
	var failures []error
	if len(published) > 0 {
		merged, err = r.Merged(ctx, published)
		failures = append(failures, err)
	}
	for i, answer := range answers {
		member := &seen.members[i]
		if clusterset.AwaitsMerge(answer) && merged[answer.ClusterID] {
			answer = clusterset.Merged(answer)
		}
		waiting = waiting || clusterset.AwaitsMerge(answer)
		outcome, err := apply.Change(ctx, r.Client, member, answer)
		if silent := !silences[member.ClusterID].Since.IsZero(); err == nil && outcome == apply.Configured && !silent {
			log.FromContext(ctx).Info("Member answered", "cluster", member.ClusterID, "peer", member.Annotations[v1alpha1.AnnotationPeer] != "", "wire", wire)
		}
		failures = append(failures, client.IgnoreNotFound(err))
	}
	return waiting, errors.Join(failures...)
}

// dismiss takes back all that departing members had exported, then lets their
// announces go (LDR-GC-2). What counts is the announce's cluster ID, not its name.
func (r *Reconciler) dismiss(ctx context.Context, seen observed) error {
	var failures []error
	for i := range seen.departing {
		member := &seen.departing[i]
		if err := r.takeBack(ctx, member.ClusterID); err != nil {
			failures = append(failures, err)
			continue
		}
		outcome, err := apply.Change(ctx, r.Client, member, clusterset.Dismiss(member))
		if err == nil && outcome == apply.Configured {
			log.FromContext(ctx).Info("Member left", "cluster", member.ClusterID)
		}
		failures = append(failures, client.IgnoreNotFound(err))
	}
	return errors.Join(failures...)
}

// takeBack deletes all that a cluster has in the common area. It asks the API
// server: a cache may tell of a member's departure before it tells of the export
// the member wrote just before, and nobody would ever look for that again.
func (r *Reconciler) takeBack(ctx context.Context, cluster string) error {
	var exports v1alpha1.ResourceExportList
	if err := r.Uncached.List(ctx, &exports, client.InNamespace(r.Namespace)); err != nil {
		return err
	}
	var failures []error
	for i := range exports.Items {
		export := &exports.Items[i]
		if export.Spec.ClusterID == cluster && export.DeletionTimestamp.IsZero() {
			_, err := apply.Change(ctx, r.Client, export, nil)
			failures = append(failures, err)
		}
	}
	var slices discoveryv1.EndpointSliceList
	failures = append(failures, r.takeLease(ctx, cluster))
	if err := r.Uncached.List(ctx, &slices, client.InNamespace(r.Namespace), client.MatchingLabels{
		mcsv1beta1.LabelSourceCluster: cluster, discoveryv1.LabelManagedBy: v1alpha1.SliceManager,
	}); err != nil {
		return err
	}
	for i := range slices.Items {
		_, err := apply.Change(ctx, r.Client, &slices.Items[i], nil)
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// report writes the status of the ClusterSets (LDR-CS-2, LDR-MS-2).
func (r *Reconciler) report(ctx context.Context, seen observed, view view) error {
	next := seen.set.DeepCopy()
	next.Status = r.status(seen, view)
	outcome, err := apply.Status(ctx, r.Client, seen.set, next)
	if outcome == apply.Configured && err == nil {
		r.tell(seen, next)
	}
	for _, surplus := range seen.surplus {
		refused := surplus.DeepCopy()
		refused.Status = clusterset.Refused(surplus, clusterset.Problem{Reason: clusterset.ReasonSecondClusterSet, Message: fmt.Sprintf(
			"ClusterSet %q in this Namespace is older and is served; delete one of them", seen.set.Name)}, r.Now())
		_, surplusErr := apply.Status(ctx, r.Client, surplus, refused)
		err = errors.Join(err, surplusErr)
	}
	return err
}

// status of the ClusterSet that is served. A refusal of it ends no conflict: what
// members claim stands in the area all the same.
func (r *Reconciler) status(seen observed, view view) v1alpha1.ClusterSetStatus {
	status := *view.status.DeepCopy()
	if seen.problem != nil {
		status = clusterset.Refused(seen.set, *seen.problem, r.Now())
	}
	clusterset.TellConflicts(&status, seen.set.Status, seen.conflicts, r.Now())
	return status
}

// tell repeats a change of the whole, of conflicts, or of clean-ups to come, as Events.
func (r *Reconciler) tell(seen observed, after *v1alpha2.ClusterSet) {
	before := seen.set
	r.announceCleanUps(seen, after)
	for _, n := range clusterset.ConflictNews(before.Status, after.Status) {
		r.Events.Eventf(after, nil, n.Type, n.Reason, "Compare", "%s", n.Message)
	}
	now := after.Status.Conditions[0]
	if len(before.Status.Conditions) > 0 {
		if old := before.Status.Conditions[0]; old.Status == now.Status && old.Reason == now.Reason && old.Message == now.Message {
			return
		}
	}
	kind, reason, message := "Normal", now.Reason, now.Message
	if now.Status == "False" {
		kind = "Warning"
	}
	if reason == "" {
		reason, message = "Ready", "all members are connected"
	}
	r.Events.Eventf(after, nil, kind, reason, "Watch", "%s", message)
}
