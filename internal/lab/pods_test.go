package lab_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-dev/lockstep/internal/lab"
)

// sleeper is an image that the shared lab plays with a local program.
const sleeper = "sleeper"

func deployment(name, image string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
			},
		},
	}
}

// deploy creates a Deployment and waits until it is available.
func deploy(t *testing.T, client kubernetes.Interface, d *appsv1.Deployment) {
	t.Helper()
	deployments := client.AppsV1().Deployments("default")
	_, err := deployments.Create(t.Context(), d, metav1.CreateOptions{})
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		now, err := deployments.Get(ctx, d.Name, metav1.GetOptions{})
		if err == nil && now.Status.AvailableReplicas != *d.Spec.Replicas {
			err = fmt.Errorf("%d of %d replicas are available", now.Status.AvailableReplicas, *d.Spec.Replicas)
		}
		return err
	})
}

func TestPodsOfADeploymentBecomeEndpoints(t *testing.T) {
	c, client := leader(t)
	deploy(t, client, deployment("web", "nginx", 3))
	_, err := client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		slices, err := client.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"})
		if err != nil {
			return err
		}
		ready := 0
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
					ready++
				}
			}
		}
		if ready != 3 {
			return fmt.Errorf("%d endpoints are ready, want 3", ready)
		}
		return nil
	})
	pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	must(t, err)
	for _, pod := range pods.Items {
		if !strings.HasPrefix(pod.Status.PodIP, fmt.Sprintf("10.%d.", c.PodCIDR().Addr().As4()[1])) {
			t.Errorf("Pod address %s is not in %s", pod.Status.PodIP, c.PodCIDR())
		}
	}
}

func TestPodOfAPlayedImageIsAMarkedProcessThatCanBeKilled(t *testing.T) {
	c, client := leader(t)
	deploy(t, client, deployment("sleep", sleeper, 1))
	before := sleeping(t, c)
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", before.Pid))
	must(t, err)
	if !strings.Contains(string(environment), "LOCKSTEP_LAB=") {
		t.Error("the process carries no mark")
	}
	must(t, c.Kill(t.Context(), "default/sleep-"))
	eventually(t, func(context.Context) error {
		if now := sleeping(t, c); now.Pid == before.Pid || now.Restarts == 0 {
			return fmt.Errorf("the Pod's process is still %d", before.Pid)
		}
		return nil
	})
	log, err := c.FindLog(t.Context(), "sleep-")
	if err != nil || log != before.Log {
		t.Errorf("log %q, %v; want %q", log, err, before.Log)
	}
}

// sleeping waits for the process of the Pod and returns it.
func sleeping(t *testing.T, c *lab.Cluster) (found lab.PodStatus) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		status, err := c.Status(ctx)
		if err != nil {
			return err
		}
		for _, pod := range status.Pods {
			if strings.HasPrefix(pod.Pod, "sleep-") {
				found = pod
				return nil
			}
		}
		return fmt.Errorf("no process of the Pod runs")
	})
	return found
}

// The node agent must see the world of after a restore, not of before.
func TestPodsAreServedAfterARestore(t *testing.T) {
	c, client := leader(t)
	must(t, c.RestoreEmpty(patient(t)))
	deploy(t, client, deployment("after-restore", "nginx", 1))
}
