package mc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/bundle"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/install"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// UndeployOptions name one controller of one cluster.
type UndeployOptions struct {
	Role      config.Role
	Namespace string
	// Manifest is the file it was deployed from; nil: the manifests of this
	// program.
	Manifest []byte
	// KeepCRDs leaves the kinds, and the Namespace with the objects in it, such
	// as member tokens.
	KeepCRDs bool
	// Kinds tells what there could be in the Namespace; without it, the Namespace
	// stays.
	Kinds kindLister
	// Wait bounds the wait until the controller's Pods have gone; 0 does not
	// wait, and then the Namespace stays.
	Wait     time.Duration
	Report   func(Touched) // hears of each object as soon as its outcome is known; may be nil
	Progress Progress
}

// Undeploy takes a controller out of a cluster, with all that Deploy, the
// controller and the command line made for it. It is refused while a ClusterSet
// or anything of one is there: without a controller its finalizers would hold it
// for ever.
//
// CRDs that another controller of the cluster needs stay, and so does a
// Namespace in which something else lives.
func Undeploy(ctx context.Context, c client.WithWatch, opts UndeployOptions) ([]Touched, error) {
	run := undeployRun{UndeployOptions: opts, client: c}
	objects, err := run.objects()
	if err != nil {
		return nil, err
	}
	if err := run.refuse(ctx); err != nil {
		return nil, err
	}
	if opts.Manifest != nil {
		// Of a kind that nobody knows any more there are no objects to take out.
		_ = bundle.Place(objects, opts.Namespace, func(obj *unstructured.Unstructured) (bool, error) { return c.IsObjectNamespaced(obj) })
	}
	err = run.remove(ctx, objects)
	if err != nil && ctx.Err() != nil {
		err = &exit.Error{Code: exit.Failed, Next: "repeat the command to complete it",
			Cause: fmt.Errorf("stopped while taking the %s out of Namespace %q, after %d objects: %w", opts.Role, opts.Namespace, len(run.touched), context.Cause(ctx))}
	}
	return run.touched, explain(opts.what(), err)
}

func (o UndeployOptions) what() string {
	return fmt.Sprintf("cannot take the %s out of Namespace %q", o.Role, o.Namespace)
}

// objects are what was deployed, but for the Namespace: whether that may go is
// known only when all of ours in it is gone.
func (o UndeployOptions) objects() ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	var err error
	if o.Manifest != nil {
		objects, err = readBundle(o.Manifest, o.Role, o.Namespace)
	} else {
		objects, err = config.Render(o.Role, config.Options{Namespace: o.Namespace, Admission: true}) // with whatever may have been deployed
	}
	if err != nil {
		return nil, &exit.Error{Code: exit.Usage, Cause: err}
	}
	return slices.DeleteFunc(objects, func(obj *unstructured.Unstructured) bool {
		return obj.GetKind() == "Namespace" && obj.GetName() == o.Namespace
	}), nil
}

type undeployRun struct {
	UndeployOptions
	client  client.WithWatch
	touched []Touched
}

func (r *undeployRun) did(t Touched) {
	r.touched = append(r.touched, t)
	if r.Report != nil {
		r.Report(t)
	}
}

// refuse looks for anything that still needs the controller.
func (r *undeployRun) refuse(ctx context.Context) error {
	if err := refuseOtherRole(ctx, r.client, r.what(), r.Role, r.Namespace); err != nil {
		return err
	}
	set, err := onlySet(ctx, r.client, r.what(), r.Namespace)
	if meta.IsNoMatchError(err) {
		return nil // the kinds are gone, and all objects with them
	}
	if err != nil {
		return err
	}
	if set != nil {
		verb := "lockstep mc destroy"
		if isMember(set) {
			verb = "lockstep mc leave"
		}
		return &refusal.Refusal{What: r.what(), Why: fmt.Sprintf("ClusterSet %q is there", set.Name),
			Next: fmt.Sprintf("end it first: %s --clusterset %s -n %s", verb, set.Name, r.Namespace)}
	}
	for _, list := range []client.ObjectList{&v1alpha1.MemberClusterAnnounceList{}, &v1alpha1.ResourceExportList{}, &v1alpha1.ResourceImportList{}} {
		if err := r.refuseAny(ctx, list); err != nil {
			return err
		}
	}
	return nil
}

func (r *undeployRun) refuseAny(ctx context.Context, list client.ObjectList) error {
	err := r.client.List(ctx, list, client.InNamespace(r.Namespace), client.Limit(1))
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil || meta.LenList(list) == 0 {
		return explain(r.what(), err)
	}
	return apply.Each(list, func(object client.Object) error {
		return &refusal.Refusal{What: r.what(), Why: fmt.Sprintf("%s %q is still in the common area", kindOf(r.client, object), object.GetName()),
			Next: "let every member leave, and wait until the controller has removed what they exported"}
	})
}

// remove deletes in the order in which nothing comes back: the controller and
// what it was made of, its Pods, what the command line and the Pods left, and
// the Namespace.
func (r *undeployRun) remove(ctx context.Context, objects []*unstructured.Unstructured) error {
	needed, err := r.neededByOthers(ctx)
	if err != nil {
		return err
	}
	_, err = install.Remove(ctx, r.client, objects, install.RemoveOptions{
		Data:   !r.KeepCRDs,
		Report: func(result install.Result) { r.did(touchedBy(result)) },
		Keep: func(obj *unstructured.Unstructured) string {
			if needed[obj.GetName()] && obj.GetKind() == "CustomResourceDefinition" {
				return "another controller of this cluster needs it"
			}
			return ""
		},
	})
	if err != nil {
		return err
	}
	if err := r.awaitPods(ctx); err != nil {
		return err
	}
	if err := r.removeLeftovers(ctx); err != nil || r.KeepCRDs || r.Wait == 0 {
		return err
	}
	if r.Namespace == metav1.NamespaceDefault || services.OfKubernetes(r.Namespace) {
		return nil
	}
	return r.removeNamespace(ctx)
}

// neededByOthers are the CRDs of the other controllers of this cluster, by name.
func (r *undeployRun) neededByOthers(ctx context.Context) (map[string]bool, error) {
	var deployments appsv1.DeploymentList
	if err := r.client.List(ctx, &deployments, client.MatchingLabels{"component": deploymentName}); err != nil {
		return nil, err
	}
	needed := map[string]bool{}
	for i := range deployments.Items {
		other := &deployments.Items[i]
		if other.Namespace == r.Namespace {
			continue
		}
		crds, err := config.CRDs(roleOf(other))
		if err != nil { // none of ours; what it needs is not known, so it needs all
			crds, err = config.CRDs(r.Role)
		}
		if err != nil {
			return nil, err
		}
		for _, crd := range crds {
			needed[crd.GetName()] = true
		}
	}
	return needed, nil
}

func (r *undeployRun) awaitPods(ctx context.Context) error {
	if r.Wait == 0 {
		return nil
	}
	r.Progress.sayf("waiting up to %s until the controller's Pods have gone", r.Wait)
	err := until(ctx, r.Wait, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := r.client.List(ctx, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{"component": deploymentName})
		return err == nil && len(pods.Items) == 0, err
	})
	if errors.Is(err, errNotYet) {
		return waiting(r.what(), "repeat the command to go on waiting", errors.New("Pods of the controller are still there"))
	}
	return err
}

// removeLeftovers deletes the credentials of a leader, unless what people have
// there is to be kept, and the Lease by which the Pods chose the active one.
func (r *undeployRun) removeLeftovers(ctx context.Context) error {
	if r.Role == config.Leader && !r.KeepCRDs {
		credentials, err := deleteCredentials(ctx, r.client, r.Namespace)
		for _, t := range credentials {
			r.did(t)
		}
		if err != nil {
			return err
		}
	}
	key := client.ObjectKey{Namespace: r.Namespace, Name: "lockstep-" + string(r.Role)}
	lease, err := find[coordinationv1.Lease](ctx, r.client, key)
	if err != nil || lease == nil {
		return err
	}
	if err := deleteByUID(ctx, r.client, lease, lease.UID); err != nil {
		return err
	}
	r.did(Touched{Kind: "lease.coordination.k8s.io", Namespace: lease.Namespace, Name: lease.Name, Outcome: apply.Deleted})
	return nil
}
