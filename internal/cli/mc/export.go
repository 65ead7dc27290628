package mc

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// ExportOptions name one Service of this cluster.
type ExportOptions struct {
	Namespace string
	Name      string
	// Importers are the clusters to look at for what was imported, beside this one.
	Importers []Importer
	// Wait bounds the wait for leader and importers; 0 does not wait.
	Wait     time.Duration
	Progress Progress
}

// Importer is another cluster of the ClusterSet.
type Importer struct {
	Name string // as the user calls it
	client.Reader
}

// ExportResult says what Export or Unexport did, and to which clusters it came.
type ExportResult struct {
	Touched []Touched
	// Conflict is what exports of other clusters disagree on; "" when nothing.
	Conflict string
}

// Export makes the ServiceExport of a Service and waits until the leader has
// merged it and the importers have it. What the exporter would refuse is refused
// before anything is written.
func Export(ctx context.Context, c client.Client, opts ExportOptions) (ExportResult, error) {
	run := exportRun{ExportOptions: opts, client: c}
	if err := run.check(ctx); err != nil {
		return ExportResult{}, err
	}
	if err := run.ensure(ctx); err != nil {
		return run.result, explain(run.what(), err)
	}
	if opts.Wait == 0 {
		return run.result, nil
	}
	err := run.awaitMerge(ctx)
	if err == nil {
		err = run.awaitImports(ctx, true)
	}
	return run.result, run.stays(ctx, err)
}

func (o ExportOptions) tuple() services.Tuple {
	return services.Tuple{Namespace: o.Namespace, Name: o.Name}
}

type exportRun struct {
	ExportOptions
	client client.Client
	// cluster is the ID of this one; "" when it is no member, or, with unread,
	// when these credentials may not read it.
	cluster string
	unread  bool
	// none: there was no export to end. What goes away all the same is left of an
	// earlier one.
	none   bool
	result ExportResult
}

func (r *exportRun) what() string { return fmt.Sprintf("cannot export Service %q", r.tuple()) }

func (r *exportRun) check(ctx context.Context) error {
	service, err := find[corev1.Service](ctx, r.client, r.tuple())
	if err != nil {
		return explain(r.what(), err)
	}
	if refused := services.RefuseExport(r.tuple(), service); refused != nil {
		return r.sayMissingNamespace(ctx, refused, service)
	}
	if err := r.readCluster(ctx); err != nil {
		return explain(r.what(), err)
	}
	if !r.unread && r.cluster == "" && r.Wait > 0 {
		return failed(r.what(), "join it first (lockstep mc join), or give --wait 0 to export the Service ahead of that",
			errors.New("this cluster is no member of a ClusterSet"))
	}
	return nil
}

// sayMissingNamespace puts the reason behind the reason: where there is no
// Namespace there can be no Service, and it is the Namespace that is mistyped.
func (r *exportRun) sayMissingNamespace(ctx context.Context, refused *refusal.Refusal, service *corev1.Service) error {
	if service != nil || services.OfKubernetes(r.Namespace) {
		return refused
	}
	present, err := find[corev1.Namespace](ctx, r.client, client.ObjectKey{Name: r.Namespace})
	if err == nil && present == nil { // without the right to look, the Service is all that is known
		refused.Why = fmt.Sprintf("this cluster has no Namespace %q", r.Namespace)
		refused.Next = "name the Namespace of the Service with -n, or choose another cluster with --context"
	}
	return refused
}

// readCluster finds the ID of this cluster. Who exports Services need not be
// allowed to read the ClusterSet; then it is not known.
func (r *exportRun) readCluster(ctx context.Context) error {
	var sets v1alpha2.ClusterSetList
	err := r.client.List(ctx, &sets)
	if r.unread = apierrors.IsForbidden(err); r.unread {
		return nil
	}
	for i := range sets.Items {
		if isMember(&sets.Items[i]) {
			r.cluster = sets.Items[i].Spec.ClusterID
		}
	}
	return err
}

func (r *exportRun) ensure(ctx context.Context) error {
	wanted := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name,
		Annotations: map[string]string{v1alpha1.AnnotationCreatedByCLI: "true"}}}
	done, err := ensure(ctx, r.client, wanted, func(present *mcsv1beta1.ServiceExport) error {
		if present.DeletionTimestamp.IsZero() {
			return nil
		}
		return &refusal.Refusal{What: r.what(), Why: "its ServiceExport is being deleted",
			Next: "wait until it has gone, then repeat the command"}
	})
	if err == nil {
		r.did("serviceexport", done.Outcome, "")
	}
	return err
}

func (r *exportRun) did(kind string, outcome Outcome, note string) {
	r.result.Touched = append(r.result.Touched, Touched{Kind: kind, Namespace: r.Namespace, Name: r.Name, Outcome: outcome, Note: note})
}

// awaitMerge waits until the conditions of the ServiceExport say that the leader
// has merged it, or that it never will.
func (r *exportRun) awaitMerge(ctx context.Context) error {
	r.Progress.sayf("waiting up to %s for the leader", r.Wait)
	last, since := "the member controller has not looked at it; see that it runs", time.Now()
	err := until(ctx, r.Wait, func(ctx context.Context) (bool, error) {
		var export mcsv1beta1.ServiceExport
		if err := r.client.Get(ctx, r.tuple(), &export); err != nil {
			return false, err
		}
		told := readExport(export)
		if told.sentence != last && told.sentence != "" {
			last, since = told.sentence, time.Now()
			r.Progress.sayf("%s", last)
		}
		if told.refused && time.Since(since) >= standFirm {
			return false, &refusal.Refusal{What: r.what(), Why: told.sentence, Rule: told.rule,
				Next: fmt.Sprintf("repair that, or take it back with: lockstep mc unexport %s -n %s", r.Name, r.Namespace)}
		}
		r.result.Conflict = told.conflict
		return told.merged, nil
	})
	if errors.Is(err, errNotYet) {
		return latef("the leader has not merged it after %s: %s", r.Wait, last)
	}
	return err
}

// told is what the conditions of a ServiceExport say.
type told struct {
	merged, refused          bool
	sentence, rule, conflict string
}

func readExport(export mcsv1beta1.ServiceExport) told {
	current := func(kind mcsv1beta1.ServiceExportConditionType) metav1.Condition {
		c := meta.FindStatusCondition(export.Status.Conditions, string(kind))
		if c == nil || c.ObservedGeneration != export.Generation {
			return metav1.Condition{}
		}
		return *c
	}
	var t told
	valid, ready := current(mcsv1beta1.ServiceExportConditionValid), current(mcsv1beta1.ServiceExportConditionReady)
	switch {
	case valid.Status == metav1.ConditionFalse:
		t.refused, t.sentence, t.rule = true, valid.Message, "MEM-SE-2"
	case ready.Status == metav1.ConditionTrue:
		t.merged = true
	default:
		t.refused, t.sentence = ready.Reason == string(mcsv1beta1.ServiceExportReasonFailed), ready.Message
	}
	if c := current(mcsv1beta1.ServiceExportConditionConflict); c.Status == metav1.ConditionTrue {
		t.conflict = c.Message
	}
	return t
}

// stays tells, with an error, that the ServiceExport is there: it is taken up by
// itself when what is in the way has gone.
func (r *exportRun) stays(ctx context.Context, err error) error {
	switch {
	case err == nil, refusal.In(err) != nil:
		return err
	case ctx.Err() != nil:
		return failed(fmt.Sprintf("stopped while Service %q was being exported", r.tuple()),
			fmt.Sprintf("its ServiceExport stays and goes on by itself; take it back with: lockstep mc unexport %s -n %s", r.Name, r.Namespace), context.Cause(ctx))
	case errors.Is(err, errNotYet):
		return waiting(fmt.Sprintf("Service %q is not there yet", r.tuple()),
			fmt.Sprintf("its ServiceExport stays and goes on by itself; repeat the command to wait longer, or take it back with: lockstep mc unexport %s -n %s", r.Name, r.Namespace), err)
	default:
		return explain(r.what(), err)
	}
}
