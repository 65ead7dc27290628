// Package label tells the ClusterSet which sets of labels the Pods here have, and
// keeps here the numbers that the leader gives to those of all clusters.
package label

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/local"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/plan/policy/label"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Reconciler has one key: which sets of labels there are is known only from all
// Pods together.
type Reconciler struct {
	Local     client.Client
	Link      *remote.Link
	Events    events.EventRecorder
	Namespace string // of the member
	// Enabled: policies reach across clusters. When not, what was exported and kept
	// while they did is taken back.
	Enabled bool
	// Gather is for how long changes are gathered before a pass.
	Gather time.Duration

	// told is what was said of labels that are left out, and of refused numbers.
	told map[string]bool
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	area := r.Link.Area()
	if !area.Ready() {
		return ctrl.Result{}, nil // this key comes again when it is
	}
	problems, failure := r.publish(ctx, area)
	if area.Trusted(req) {
		refused, err := r.keep(ctx, area)
		problems, failure = append(problems, refused...), errors.Join(failure, err)
	}
	return apply.Result(ctrl.Result{}, errors.Join(failure, r.tell(ctx, area, problems)))
}

// publish makes the exports what the Pods here come to.
func (r *Reconciler) publish(ctx context.Context, area *remote.Area) (problems []problem, err error) {
	if !area.Admitted() {
		return nil, nil
	}
	seen := label.ExportObserved{Cluster: area.ClusterID, Area: area.Namespace, Enabled: r.Enabled}
	if seen.Present, err = area.Exports(ctx); err != nil {
		return nil, err
	}
	if r.Enabled {
		if err := r.observePods(ctx, &seen); err != nil {
			return nil, err
		}
	}
	plan := label.Exports(seen)
	if len(plan.LeftOut) > 0 {
		problems = append(problems, problem{reasonLabelsLeftOut, fmt.Sprintf(
			"some Pods have labels that other clusters are not told of, as those of %q: there are more than %d sets; keep labels that differ from Pod to Pod off Pods", plan.LeftOut[0], label.MaxExports)})
	}
	if err := apply.Changes(ctx, area.Direct, plan.Changes); !errors.Is(err, remote.ErrMoved) {
		return problems, err
	}
	return problems, nil // this key comes again
}

func (r *Reconciler) observePods(ctx context.Context, seen *label.ExportObserved) error {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	var namespaces corev1.NamespaceList
	for _, list := range []client.ObjectList{pods, &namespaces} {
		if err := r.Local.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
	}
	seen.Namespaces = make(map[string]map[string]string, len(namespaces.Items))
	for _, namespace := range namespaces.Items {
		seen.Namespaces[namespace.Name] = namespace.Labels
	}
	seen.Pods = make([]label.Pod, 0, len(pods.Items))
	for _, pod := range pods.Items {
		seen.Pods = append(seen.Pods, label.Pod{Namespace: pod.Namespace, Labels: pod.Labels})
	}
	return nil
}

// keep makes the LabelIdentities here what the common area offers.
func (r *Reconciler) keep(ctx context.Context, area *remote.Area) (problems []problem, err error) {
	state := r.Link.State()
	seen := label.ImportsObserved{
		Cluster: area.ClusterID, ClusterSet: area.ClusterSet, Enabled: r.Enabled,
		Hold: services.Hold{Active: state.Memory.HoldSince != nil, Released: state.Released},
	}
	if seen.Offered, err = area.ImportsOf(ctx, v1alpha1.KindLabelIdentity); err != nil {
		return nil, err
	}
	var present v1alpha1.LabelIdentityList
	if err := r.Local.List(ctx, &present); err != nil {
		return nil, err
	}
	seen.Present = present.Items
	plan := label.Imports(seen)
	for _, refused := range plan.Refused {
		problems = append(problems, problem{reasonLabelRefused, refused.Error()})
	}
	if err := apply.Changes(ctx, r.Local, plan.Freed); err != nil {
		return problems, err // nothing may have its number before it is gone
	}
	return problems, apply.Changes(ctx, r.Local, plan.Changes)
}

// problem is an Event to be.
type problem struct{ reason, message string }

const (
	// reasonLabelsLeftOut: this cluster has too many sets of labels.
	reasonLabelsLeftOut = "LabelsLeftOut"
	// reasonLabelRefused: a number of the leader is not kept here.
	reasonLabelRefused = "LabelRefused"
)

// tell makes an Event of each problem that is new.
func (r *Reconciler) tell(ctx context.Context, area *remote.Area, problems []problem) error {
	before := r.told
	r.told = map[string]bool{}
	for _, p := range problems {
		r.told[p.message] = true
		if before[p.message] {
			continue
		}
		set, err := local.Get[v1alpha2.ClusterSet](ctx, r.Local, types.NamespacedName{Namespace: r.Namespace, Name: area.ClusterSet})
		if err != nil || set == nil {
			return err
		}
		r.Events.Eventf(set, nil, corev1.EventTypeWarning, p.reason, "Label", "%s", p.message)
	}
	return nil
}
