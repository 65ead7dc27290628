package membership

import (
	"context"
	"errors"
	"fmt"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// connect makes the link lead where the ClusterSet says (MEM-CS-1, MEM-CS-2).
func (r *Reconciler) connect(ctx context.Context, seen *observed) error {
	last := r.last
	moved := last != nil && seen.access != nil && (last.ClusterID != seen.access.ClusterID || last.ClusterSet != seen.access.ClusterSet)
	former := r.Link.Area()
	if moved {
		r.Link.Disconnect()
		// What was learnt of the former announce says nothing about the next one.
		r.Link.SetState(remote.State{})
		seen.state = remote.State{}
	}
	if err := r.record(ctx, seen); err != nil || seen.access == nil {
		if err == nil {
			r.Link.Disconnect()
		}
		return err
	}
	if moved {
		r.depose(ctx, seen, last, former)
	} else if r.Link.Area() == nil {
		// What was learnt of the leader by an earlier process or connection.
		r.Link.SetState(remote.State{Memory: clusterset.Recall(seen.set.Annotations, r.Now())})
	}
	var unusable *remote.UnusableError
	if err := r.reach(*seen.access, seen.state.Lost); errors.As(err, &unusable) {
		r.Link.Disconnect()
		seen.problem = &clusterset.Problem{Reason: clusterset.ReasonCredentialMissing, Message: unusable.Error()}
		return nil
	} else if err != nil {
		return err
	}
	r.last = seen.access
	policy, _ := clusterset.ReadLossPolicy(seen.set.Annotations)
	r.Link.Prefer(policy)
	withdrawing := seen.state.Pulse.Problem != nil && seen.state.Pulse.Problem.Reason == clusterset.ReasonWithdrawing
	if seen.answered && !seen.state.Pulse.Answered || withdrawing && !seen.announced {
		r.Link.Nudge() // the next beat would find it, but a person may be waiting
	}
	return nil
}

// depose ends what the member was before. In a rename the former announce is left
// to whoever renames: deleted now, it would take the exports along before anybody
// has those of the new ID.
func (r *Reconciler) depose(ctx context.Context, seen *observed, last *clusterset.Access, former *remote.Area) {
	r.last = nil
	if clusterset.Renamed(seen.set, last) {
		log.FromContext(ctx).Info("Renamed; the former announce is left to whoever renames", "cluster", last.ClusterID)
		if err := r.settled(ctx, former); err != nil {
			log.FromContext(ctx).Error(err, "Writes under the former cluster ID may still come", "cluster", last.ClusterID)
		}
		return
	}
	if err := r.withdraw(ctx, last, former); err != nil {
		// The old leader may be gone for good; the new membership must not wait for it.
		log.FromContext(ctx).Error(err, "Cannot withdraw under the former cluster ID", "cluster", last.ClusterID)
		r.Events.Eventf(seen.set, nil, "Warning", "WithdrawFailed", "Connect",
			"the exports of former cluster ID %q may remain at the leader; delete MemberClusterAnnounce \"member-announce-from-%s\" there", last.ClusterID, last.ClusterID)
	}
}

// reach opens the link. An area that has lost writes is opened again, with
// caches listed afresh, now that the hold is stored.
func (r *Reconciler) reach(access clusterset.Access, lost *remote.Area) error {
	if lost != nil && lost == r.Link.Area() && lost.Access.Equal(access) {
		return r.Link.Refresh()
	}
	return r.Link.Connect(access)
}

// record writes what has to outlive this process onto the ClusterSet: the
// finalizer that lets a leaving member withdraw, the resolved legacy ID, and the
// memory of the leader.
func (r *Reconciler) record(ctx context.Context, seen *observed) error {
	next := seen.set.DeepCopy()
	controllerutil.AddFinalizer(next, v1alpha1.FinalizerLeave)
	if next.Spec.ClusterID == "" {
		next.Spec.ClusterID = seen.id
	}
	// Nothing is known right after the start and after leaving; what was learnt
	// over a link that leads nowhere now still counts.
	if memory := seen.state.Memory; memory != (v1alpha1.LeaderMemory{}) {
		over := memory.HoldSince != nil && (len(seen.awaited) == 0 || clusterset.Accepted(next.Annotations, memory))
		if over && r.Link.Release(seen.state) {
			log.FromContext(ctx).Info("Withdrawals are no longer held", "clusterSet", seen.set.Name)
			memory.HoldSince = nil
		}
		if memory.HoldSince == nil {
			delete(next.Annotations, v1alpha1.AnnotationAcceptLeader)
		}
		if !equality.Semantic.DeepEqual(memory, clusterset.ReadMemory(next.Annotations)) {
			metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.AnnotationLeaderSeen, clusterset.WriteMemory(memory))
		}
	}
	_, err := apply.Change(ctx, r.Local, seen.set, next)
	if err == nil {
		seen.set = next
	}
	return err
}

// administrator stands among the clusters for who exports policies.
const administrator = "an administrator (policies)"

// awaited are the clusters that something here came from and that have not
// published again since the hold began. It goes by slices as well as by imports:
// of an upstream leader nobody knows what came from whom (the empty ID), and
// such a hold ends only when it is accepted.
func (r *Reconciler) awaited(ctx context.Context, seen observed) (sets.Set[string], error) {
	awaited := sets.New[string]()
	if seen.state.Memory.HoldSince == nil {
		return awaited, nil
	}
	add := func(cluster string) {
		if !seen.state.Released[cluster] {
			awaited.Insert(cluster)
		}
	}
	// With nothing imported there is nothing to hold, but own exports must be
	// back before this member may say that it trusts the leader again.
	add(seen.id)
	ours := client.MatchingLabels{v1alpha1.LabelClusterSet: seen.set.Name}
	var imports mcsv1beta1.ServiceImportList
	var endpoints discoveryv1.EndpointSliceList
	var networks v1alpha1.ClusterInfoImportList
	if err := errors.Join(r.Local.List(ctx, &imports, ours), r.Local.List(ctx, &endpoints, ours), r.Local.List(ctx, &networks, ours)); err != nil {
		return nil, err
	}
	// An administrator made policies, and does not publish anything again.
	switch withheld, err := r.Withheld(ctx); {
	case err != nil:
		return nil, err
	case withheld:
		awaited.Insert(administrator)
	}
	for i := range networks.Items {
		add(networks.Items[i].Spec.ClusterID)
	}
	for i := range imports.Items {
		for _, c := range imports.Items[i].Status.Clusters {
			add(c.Cluster)
		}
	}
	for i := range endpoints.Items {
		add(endpoints.Items[i].Labels[mcsv1beta1.LabelSourceCluster])
	}
	return awaited, nil
}

// report writes the status of the ClusterSets (MEM-CS-6).
func (r *Reconciler) report(ctx context.Context, seen observed) error {
	pulse := r.Link.State().Pulse
	if pulse.Held {
		pulse.Awaited = strings.Join(sets.List(seen.awaited.Clone().Delete("")), ", ")
	}
	if seen.problem != nil {
		pulse = clusterset.Pulse{Problem: seen.problem}
	}
	for _, surplus := range seen.surplus {
		problem := &clusterset.Problem{Reason: clusterset.ReasonSecondClusterSet, Message: fmt.Sprintf(
			"ClusterSet %q in this Namespace is older and is served; delete one of them", seen.set.Name)}
		if err := r.writeStatus(ctx, surplus, clusterset.Pulse{Problem: problem}, nil); err != nil {
			return err
		}
	}
	return r.writeStatus(ctx, seen.set, pulse, seen.conflicts)
}

func (r *Reconciler) writeStatus(ctx context.Context, set *v1alpha2.ClusterSet, pulse clusterset.Pulse, conflicts map[string]string) error {
	next := set.DeepCopy()
	next.Status = clusterset.MemberStatus(set, pulse, r.Now(), r.Timeout)
	if conflicts != nil {
		clusterset.TellConflicts(&next.Status, set.Status, conflicts, r.Now())
	}
	outcome, err := apply.Status(ctx, r.Local, set, next)
	if outcome == apply.Configured && err == nil {
		before, after := overall(set), overall(next)
		if before != after {
			r.Events.Eventf(next, nil, eventType(after), reasonOr(after.reason, "Ready"), "Connect", "%s", reasonOr(after.message, "connected to the leader"))
		}
	}
	return err
}

type outline struct{ status, reason, message string }

func overall(set *v1alpha2.ClusterSet) outline {
	if len(set.Status.Conditions) == 0 {
		return outline{}
	}
	c := set.Status.Conditions[0]
	return outline{string(c.Status), c.Reason, c.Message}
}

func eventType(o outline) string {
	if o.status == "False" {
		return "Warning"
	}
	return "Normal"
}

func reasonOr(reason, otherwise string) string {
	if reason == "" {
		return otherwise
	}
	return reason
}

// startWith is one request at the start, so that a member without any
// ClusterSet cleans up what an earlier membership left (MEM-ST-1).
func startWith(request reconcile.Request) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(request)
		return nil
	})
}
