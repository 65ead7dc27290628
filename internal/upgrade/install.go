package upgrade

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	wire "github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"

	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/kube/install"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/migration"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// manifests are those of this program for the wanted image. What somebody has
// configured stays: the configuration file and the number of replicas.
//
// Replicas are those of a Deployment that is no more; 0 without one.
func manifests(ctx context.Context, c client.Client, role config.Role, namespace, image string, replicas int32) ([]*unstructured.Unstructured, error) {
	options := config.Options{Namespace: namespace, Image: image, Replicas: replicas}
	kept, err := configured(ctx, c, role, namespace)
	if err != nil {
		return nil, err
	}
	if kept != nil {
		options.Configure = func(c *wire.MultiClusterConfig) { *c = *kept }
	}
	deployment, err := deploymentIn(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	if deployment != nil {
		options.Replicas = ptr.Deref(deployment.Spec.Replicas, 0)
	}
	if options.Admission, err = asked(ctx, c, role, namespace); err != nil {
		return nil, err
	}
	return config.Render(role, options)
}

// asked tells whether the API server asks the controller about writes; it goes on
// as it was.
func asked(ctx context.Context, c client.Client, role config.Role, namespace string) (bool, error) {
	name, _ := config.WebhookConfigurations(role, namespace)
	present := &metav1.PartialObjectMetadata{}
	present.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"))
	err := c.Get(ctx, client.ObjectKey{Name: name}, present)
	return err == nil, client.IgnoreNotFound(err)
}

// configured is the configuration file that is there; nil when there is none, or it
// is the one of the manifests.
func configured(ctx context.Context, c client.Client, role config.Role, namespace string) (*wire.MultiClusterConfig, error) {
	present := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: wire.ControllerConfigMap}, present)
	text := present.Data[wire.ControllerConfigKey]
	if err != nil || text == "" {
		return nil, client.IgnoreNotFound(err)
	}
	plain, err := config.Render(role, config.Options{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	for _, obj := range plain {
		standard, _, _ := unstructured.NestedString(obj.Object, "data", wire.ControllerConfigKey)
		if obj.GetKind() == "ConfigMap" && standard == text {
			return nil, nil
		}
	}
	kept := &wire.MultiClusterConfig{}
	if err := yaml.Unmarshal([]byte(text), kept); err != nil {
		return nil, fmt.Errorf("the configuration of the %s in Namespace %q cannot be read: %w", role, namespace, err)
	}
	return kept, nil
}

func deploymentIn(ctx context.Context, c client.Client, namespace string) (*appsv1.Deployment, error) {
	found := &appsv1.Deployment{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: evidence.ControllerName}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// observeInstall asks the API server what applying the manifests would change.
func (d *Driver) observeInstall(ctx context.Context, c Cluster, run *v1alpha1.UpgradeRun, lane, namespace string) migration.Install {
	image := run.Spec.Image
	i := migration.Install{Wanted: image != "", Image: image, Namespace: namespace, Deployment: evidence.ControllerName}
	if !i.Wanted {
		return i
	}
	deployment, err := deploymentIn(ctx, c, namespace)
	if err != nil {
		i.Differs = rule.Unreadable[[]string](err.Error())
		return i
	}
	if deployment != nil {
		i.Seen = deployment.ResourceVersion
		i.Present = imageOf(deployment)
		i.Missing = missing(deployment)
		i.Replicas, i.Ending = int(ptr.Deref(deployment.Spec.Replicas, 1)), deployment.DeletionTimestamp != nil
	}
	objects, err := manifests(ctx, c, roleOf(lane), namespace, image, replicasOf(run, lane))
	if err != nil {
		i.Differs = rule.Unreadable[[]string](err.Error())
		return i
	}
	if deployment != nil && otherSelector(deployment, objects) {
		i.Selector = true
		i.Differs = rule.Known([]string(nil))
		return i
	}
	i.Differs = differs(ctx, c, objects)
	return i
}

// replicasOf is how many replicas the controller of a lane had when its Deployment
// had to be deleted; 0 when it never had to.
func replicasOf(run *v1alpha1.UpgradeRun, lane string) int32 {
	noted, err := strconv.ParseInt(journalOf(run)[migration.ReplicasOf(lane)].Value, 10, 32)
	if err != nil {
		return 0
	}
	return int32(noted)
}

func differs(ctx context.Context, c Cluster, objects []*unstructured.Unstructured) rule.Read[[]string] {
	results, err := install.Apply(ctx, c, objects, install.Options{DryRun: true})
	if err != nil {
		return rule.Unreadable[[]string](err.Error())
	}
	var changed []string
	for _, r := range results {
		if r.Outcome == apply.Created || r.Outcome == apply.Configured {
			changed = append(changed, r.Kind.Kind+"/"+r.Name)
		}
	}
	return rule.Known(changed)
}

func imageOf(deployment *appsv1.Deployment) string {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		return container.Image
	}
	return ""
}

// missing is what the roll-out of a Deployment waits for; empty when all of its
// replicas are of the present template and available.
func missing(d *appsv1.Deployment) string {
	wanted := ptr.Deref(d.Spec.Replicas, 1)
	if old := rolling(d); old != "" || d.Status.AvailableReplicas >= wanted {
		return old
	}
	return fmt.Sprintf("%d of %d replicas to be available", wanted-d.Status.AvailableReplicas, wanted)
}

// rolling is what a Deployment waits for until all of its replicas are of the
// present template; empty when they are.
func rolling(d *appsv1.Deployment) string {
	wanted := ptr.Deref(d.Spec.Replicas, 1)
	switch s := d.Status; {
	case s.ObservedGeneration < d.Generation:
		return "the Deployment to be noticed by its controller"
	case s.UpdatedReplicas < wanted:
		return fmt.Sprintf("%d of %d replicas to be updated", wanted-s.UpdatedReplicas, wanted)
	case s.Replicas > s.UpdatedReplicas:
		return fmt.Sprintf("%d old replicas to end", s.Replicas-s.UpdatedReplicas)
	}
	return ""
}

// otherSelector tells a Deployment that cannot become what the manifests say.
func otherSelector(present *appsv1.Deployment, objects []*unstructured.Unstructured) bool {
	for _, obj := range objects {
		if obj.GetKind() != "Deployment" || obj.GetName() != present.Name {
			continue
		}
		wanted, _, _ := unstructured.NestedStringMap(obj.Object, "spec", "selector", "matchLabels")
		return present.Spec.Selector == nil || !maps.Equal(wanted, present.Spec.Selector.MatchLabels)
	}
	return false
}
