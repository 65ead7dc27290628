package node

import (
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/lab/node/downward"
	"github.com/lockstep-dev/lockstep/internal/lab/node/launch"
	"github.com/lockstep-dev/lockstep/internal/lab/node/volume"
)

// localPart is the Pod without its foreign containers and without the volumes
// only those mount: the part that has to work here. It is nil when there is no
// local container.
func localPart(pod *corev1.Pod, images map[string][]string) *corev1.Pod {
	part := *pod // shallow: only the three lists below are replaced
	part.Spec.InitContainers = localContainers(pod.Spec.InitContainers, images)
	part.Spec.Containers = localContainers(pod.Spec.Containers, images)
	if len(part.Spec.InitContainers)+len(part.Spec.Containers) == 0 {
		return nil
	}
	mounted := map[string]bool{}
	for c := range containers(&part) {
		for _, m := range c.VolumeMounts {
			mounted[m.Name] = true
		}
	}
	part.Spec.Volumes = nil
	for _, v := range pod.Spec.Volumes {
		if mounted[v.Name] {
			part.Spec.Volumes = append(part.Spec.Volumes, v)
		}
	}
	return &part
}

func localContainers(list []corev1.Container, images map[string][]string) (local []corev1.Container) {
	for _, c := range list {
		if _, ok := launch.Program(images, c.Image); ok {
			local = append(local, c)
		}
	}
	return local
}

// containers yields the init containers and the containers of a Pod.
func containers(pod *corev1.Pod) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	for c := range containers(pod) {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// refuse names what cannot be done for local processes. Doing something else
// instead would make a lab lie.
func refuse(part *corev1.Pod, facts downward.Facts) error {
	if err := volume.Unsupported(part); err != nil {
		return err
	}
	for c := range containers(part) {
		if err := refuseContainer(c, facts); err != nil {
			return fmt.Errorf("container %q: %w", c.Name, err)
		}
	}
	return nil
}

func refuseContainer(c *corev1.Container, facts downward.Facts) error {
	if c.Lifecycle != nil && (c.Lifecycle.PostStart != nil || c.Lifecycle.PreStop != nil) {
		return fmt.Errorf("lifecycle hooks are not supported for local processes; leave them out")
	}
	for _, p := range probesOf(c) {
		if _, err := p.target(c, facts); err != nil {
			return fmt.Errorf("%s probe: %w", p.kind, err)
		}
	}
	return nil
}
