package mc

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/install"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// deploymentName is the wire's name of a controller, of either role.
const deploymentName = "antrea-mc-controller"

// DeployOptions describe one controller of one cluster.
type DeployOptions struct {
	Role config.Role
	// Namespace of the controller; for a leader also the common area.
	Namespace string
	// CreateNamespace makes the Namespace when it is absent.
	CreateNamespace bool
	// Image of the controller; "" means that of the manifests.
	Image string
	// Manifest is a file to take in the place of the manifests of this program;
	// nil: none.
	Manifest []byte

	// Admission makes the API server ask the controller about writes.
	Admission bool

	// DryRun changes nothing, and tells what would change.
	DryRun bool
	// Wait bounds the wait until the controller runs; 0 does not wait.
	Wait time.Duration
	// Report hears of each object as soon as its outcome is known. May be nil.
	Report   func(Touched)
	Progress Progress
}

// DeployResult says what Deploy did.
type DeployResult struct {
	Touched []Touched
	// Digest of what was deployed, before it was put into a Namespace.
	Digest string
}

// Deploy installs the controller of a role: the manifests in this program, or
// those of a file, for the Namespace and in the order of their needs (WK-17).
// Everything that can be known to fail is refused before the first write, and
// what a run that was stopped has left is completed by the next one.
func Deploy(ctx context.Context, c client.WithWatch, opts DeployOptions) (DeployResult, error) {
	objects, digest, err := opts.objects()
	if err != nil {
		return DeployResult{}, err
	}
	if err := refuseOtherRole(ctx, c, opts.what(), opts.Role, opts.Namespace); err != nil {
		return DeployResult{}, err
	}
	if err := opts.placeObjects(ctx, c, objects); err != nil {
		return DeployResult{}, err
	}
	if objects, err = opts.placeNamespace(ctx, c, objects); err != nil {
		return DeployResult{}, err
	}
	result := DeployResult{Digest: digest}
	opts.Progress.sayf("deploying the %s into Namespace %q from manifests %s", opts.Role, opts.Namespace, digest)
	_, err = install.Apply(ctx, c, objects, install.Options{
		Report: func(r install.Result) {
			result.Touched = append(result.Touched, touchedBy(r))
			if opts.Report != nil {
				opts.Report(touchedBy(r))
			}
		},
		AvailableWithin: opts.Wait, DryRun: opts.DryRun,
		Waiting: func(object, missing string) { opts.Progress.sayf("waiting for %s: %s", object, missing) },
	})
	return result, opts.explain(ctx, result, err)
}

func (o DeployOptions) what() string {
	return fmt.Sprintf("cannot deploy the %s in Namespace %q", o.Role, o.Namespace)
}

// objects are what is to be installed, and the digest of what they come from.
func (o DeployOptions) objects() ([]*unstructured.Unstructured, string, error) {
	if o.Manifest != nil {
		return o.fileObjects()
	}
	digest, err := config.Verify(o.Role, o.Admission)
	if err != nil {
		return nil, "", failed(o.what(), "this program is damaged; install it again", err)
	}
	objects, err := config.Render(o.Role, config.Options{Namespace: o.Namespace, Image: o.Image, Admission: o.Admission})
	if err != nil {
		return nil, "", &exit.Error{Code: exit.Usage, Cause: err}
	}
	return objects, digest, nil
}

// placeNamespace adds the Namespace to what is to be installed, or takes it out
// and fails when it is absent.
func (o DeployOptions) placeNamespace(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var rest []*unstructured.Unstructured
	var present *unstructured.Unstructured
	for _, obj := range objects {
		if obj.GetKind() == "Namespace" && obj.GetName() == o.Namespace {
			present = obj
			continue
		}
		rest = append(rest, obj)
	}
	if !o.CreateNamespace {
		return rest, needNamespace(ctx, c, o.what(), o.Namespace, "make it, or leave out --create-namespace=false")
	}
	if present == nil {
		err := c.Get(ctx, client.ObjectKey{Name: o.Namespace}, &corev1.Namespace{})
		if !apierrors.IsNotFound(err) {
			return rest, explain(o.what(), err)
		}
		present = &unstructured.Unstructured{}
		present.SetAPIVersion("v1")
		present.SetKind("Namespace")
		present.SetName(o.Namespace)
		present.SetLabels(map[string]string{config.ManagedByLabel: config.ManagedBy})
	}
	return append([]*unstructured.Unstructured{present}, rest...), nil
}

// explain says what a run that ended early has left. Nothing is taken back: a
// half-installed controller does no harm, and repeating the command completes it.
func (o DeployOptions) explain(ctx context.Context, result DeployResult, err error) error {
	switch {
	case err == nil, refusal.In(err) != nil:
		return err
	case ctx.Err() != nil:
		return &exit.Error{Code: exit.Failed, Next: fmt.Sprintf("repeat the command to complete it, or take it out with: lockstep mc undeploy %s -n %s", roleNoun(o.Role), o.Namespace),
			Cause: fmt.Errorf("stopped while deploying the %s in Namespace %q, after %d objects: %w", o.Role, o.Namespace, len(result.Touched), context.Cause(ctx))}
	case errors.Is(err, context.DeadlineExceeded):
		return waiting(o.what(), fmt.Sprintf("see why: kubectl -n %s describe pods -l component=%s; repeating the command goes on waiting", o.Namespace, deploymentName), err)
	default:
		return explain(o.what(), err)
	}
}

// refuseOtherRole: the controllers of both roles have one name, so a Namespace
// holds one of them.
func refuseOtherRole(ctx context.Context, c client.Client, what string, role config.Role, namespace string) error {
	present, err := find[appsv1.Deployment](ctx, c, client.ObjectKey{Namespace: namespace, Name: deploymentName})
	if err != nil || present == nil {
		return explain(what, err)
	}
	other := roleOf(present)
	if other == "" || other == role {
		return nil
	}
	return &refusal.Refusal{
		What: what, Why: fmt.Sprintf("that Namespace holds the controller of a %s", other),
		Next: "name the Namespace of the other controller with -n; a cluster that leads and takes part has one Namespace for each",
	}
}

// roleOf reads what the controller of a Deployment is started as; "" when it is
// none of ours.
func roleOf(deployment *appsv1.Deployment) config.Role {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if len(container.Args) > 1 && container.Args[0] == "run" {
			return config.Role(container.Args[1])
		}
	}
	return ""
}

func roleNoun(role config.Role) string { return string(role) + "cluster" }

func touchedBy(r install.Result) Touched {
	kind := r.Kind.GroupKind()
	name := lower(kind.Kind)
	if kind.Group != "" {
		name += "." + kind.Group
	}
	return Touched{Kind: name, Namespace: r.Namespace, Name: r.Name, Outcome: r.Outcome, Note: r.Note}
}
