package evidence

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
)

// ControllerName is that of the Deployment of either role, in every version.
const ControllerName = "antrea-mc-controller"

// Controllers are the multi-cluster controllers of a Namespace, or of a whole
// cluster (""), with the times at which their processes began.
func Controllers(ctx context.Context, r client.Reader, namespace string) ([]preflight.Controller, error) {
	found, err := list[appsv1.Deployment](ctx, r, &appsv1.DeploymentList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": ControllerName})
	var all []preflight.Controller
	for i := range found {
		c := controllerOf(&found[i])
		if c.Started, err = started(ctx, r, &found[i]); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, err
}

// started is when each process of a controller was; one that is being replaced
// counts while it runs.
func started(ctx context.Context, r client.Reader, d *appsv1.Deployment) ([]time.Time, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("Deployment %s/%s has a selector that cannot be understood: %w", d.Namespace, d.Name, err)
	}
	pods, err := list[corev1.Pod](ctx, r, &corev1.PodList{}, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector})
	var times []time.Time
	for i := range pods {
		for _, c := range pods[i].Status.ContainerStatuses {
			if c.State.Running != nil {
				times = append(times, c.State.Running.StartedAt.Time)
			}
		}
	}
	return times, err
}

func controllerOf(d *appsv1.Deployment) preflight.Controller {
	c := preflight.Controller{
		Namespace: d.Namespace, Name: d.Name, Upstream: true, Role: roleOf(d),
		HostNetwork: d.Spec.Template.Spec.HostNetwork, Replicas: 1,
	}
	if d.Spec.Replicas != nil {
		c.Replicas = int(*d.Spec.Replicas)
	}
	if d.Spec.Selector != nil {
		c.Selector = d.Spec.Selector.MatchLabels
	}
	c.Surge = surges(d.Spec.Strategy, c.Replicas)
	for _, container := range d.Spec.Template.Spec.Containers {
		if _, ours := runs(container); ours {
			c.Upstream = false
		}
		c.Version = cmp.Or(c.Version, tagOf(container.Image))
		c.Ports = append(c.Ports, portsOf(container)...)
	}
	slices.Sort(c.Ports)
	c.Ports = slices.Compact(c.Ports)
	return c
}

// roleOf is what the command line of a container says: "run leader" of ours,
// "leader" of upstream's. Where it says nothing, the usual Namespaces do.
func roleOf(d *appsv1.Deployment) string {
	for _, container := range d.Spec.Template.Spec.Containers {
		if role, ours := runs(container); ours {
			return role
		}
		for _, word := range words(container) {
			if word == "leader" || word == "member" {
				return word
			}
		}
	}
	if d.Namespace == v1alpha1.DefaultMemberNamespace {
		return "member"
	}
	return "leader"
}

// runs tells a container of ours, and the role it is asked for.
func runs(c corev1.Container) (role string, ours bool) {
	all := words(c)
	i := slices.Index(all, "run")
	if i < 0 || i+1 == len(all) {
		return "", false
	}
	role = all[i+1]
	return role, role == "leader" || role == "member"
}

func words(c corev1.Container) []string { return append(slices.Clone(c.Command), c.Args...) }

// tagOf an image; empty when it is named by digest alone or not at all.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tag
}

// portsOf a container, those of its probes among them: upstream does not list
// the port on which it tells its health.
func portsOf(c corev1.Container) []int32 {
	var ports []int32
	for _, p := range c.Ports {
		ports = append(ports, cmp.Or(p.HostPort, p.ContainerPort))
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
		if probe != nil && probe.HTTPGet != nil && probe.HTTPGet.Port.Type == intstr.Int {
			ports = append(ports, probe.HTTPGet.Port.IntVal)
		}
	}
	return ports
}

// surges tells whether a roll-out starts a new Pod before it stops any.
func surges(s appsv1.DeploymentStrategy, replicas int) bool {
	if s.Type == appsv1.RecreateDeploymentStrategyType {
		return false
	}
	surge, unavailable := intstr.FromString("25%"), intstr.FromString("25%")
	if s.RollingUpdate != nil {
		surge, unavailable = *cmp.Or(s.RollingUpdate.MaxSurge, &surge), *cmp.Or(s.RollingUpdate.MaxUnavailable, &unavailable)
	}
	more, errS := intstr.GetScaledValueFromIntOrPercent(&surge, replicas, true)
	fewer, errU := intstr.GetScaledValueFromIntOrPercent(&unavailable, replicas, false)
	return errS == nil && errU == nil && more > 0 && fewer == 0
}

// configuration is what a controller of either role was told, in the ConfigMap
// that it reads. Without one it goes by its defaults.
func (r *reading) configuration(namespace string) (v1alpha1.MultiClusterConfig, error) {
	var told v1alpha1.MultiClusterConfig
	text, err := r.configMap(types.NamespacedName{Namespace: namespace, Name: v1alpha1.ControllerConfigMap}, v1alpha1.ControllerConfigKey)
	if err != nil || text == "" {
		return told, err
	}
	if err := yaml.Unmarshal([]byte(text), &told); err != nil {
		return told, fmt.Errorf("ConfigMap %s/%s cannot be understood: %w", namespace, v1alpha1.ControllerConfigMap, err)
	}
	return told, nil
}

// configMap returns one key; empty when there is no such ConfigMap or key.
func (r *reading) configMap(name types.NamespacedName, key string) (string, error) {
	var found corev1.ConfigMap
	err := r.client.Get(r.ctx, name, &found)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	return found.Data[key], err
}
