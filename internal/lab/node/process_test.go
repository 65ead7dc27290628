package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/lab"
)

func TestLivenessReplacesTheProcess(t *testing.T) {
	b := newBench(t)
	pod := b.pod("web")
	pod.Spec.Containers[0].LivenessProbe = healthz()
	// Without it, the first look at a process that is not up yet would end it.
	pod.Spec.Containers[0].StartupProbe = healthz()
	pod.Spec.Containers[0].StartupProbe.FailureThreshold = 30
	b.create(pod)
	pod = b.readyPod("web")
	pid := b.process(pod).PID
	if _, err := b.ask(pod, "/sick"); err != nil {
		t.Fatal(err)
	}
	b.eventually("another process runs", func(context.Context) error {
		for _, p := range b.agent.Pods() {
			if p.Namespace == b.namespace && p.Restarts == 1 && p.PID != pid {
				return nil
			}
		}
		return fmt.Errorf("there is %v", b.agent.Pods())
	})
	b.event(pod, "Unhealthy", "Liveness probe failed")
	b.event(pod, "Killing", "failed its liveness probe, will be restarted")
}

// A frozen process cannot be asked to end; its time runs out, and it is killed.
func TestFrozenPodIsDeleted(t *testing.T) {
	b := newBench(t)
	b.create(b.pod("web"))
	pod := b.readyPod("web")
	process := b.process(pod)
	if _, err := b.agent.Signal(b.namespace, "web", syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	b.delete(pod, 1)
	b.noPods("web")
	if alive(process.PID) {
		t.Errorf("process %d is alive", process.PID)
	}
}

// A Pod that was removed by force is gone from the API before its process is.
func TestForcedDeletionEndsTheProcess(t *testing.T) {
	b := newBench(t)
	pod := b.pod("web")
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "STUBBORN", Value: "1"})
	b.create(pod)
	pod = b.readyPod("web")
	process := b.process(pod)
	b.delete(pod, 0)
	b.eventually("the process has ended", func(context.Context) error {
		if alive(process.PID) {
			return errors.New("it is alive")
		}
		return nil
	})
	if _, err := b.agent.Signal(b.namespace, "web", syscall.SIGTERM); err == nil || !strings.Contains(err.Error(), "no process") {
		t.Errorf("Signal to a Pod that is gone = %v; want an error", err)
	}
}

// The successor of a Pod removed by force has its name, and nothing else of it.
func TestStatefulSetPodIsReplaced(t *testing.T) {
	b := newBench(t)
	labels := map[string]string{"app": "db"}
	b.create(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: b.pod("db").Spec},
		},
	})
	first := b.readyPod("db")
	process := b.process(first)
	b.delete(first, 0)
	second := b.readyPod("db", first)
	if second.Name != first.Name || second.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the successor of %s is %s", first.Name, describe([]corev1.Pod{*second}))
	}
	if now := b.process(second); now.PID == process.PID || alive(process.PID) {
		t.Errorf("process %d of the first Pod is alive; the second has %d", process.PID, now.PID)
	}
}

// While the API server answers nothing, processes are looked after as before.
func TestFrozenAPIServer(t *testing.T) {
	b := newBench(t)
	b.create(b.pod("web"))
	pod := b.readyPod("web")
	if err := b.east.Pause(t.Context(), lab.APIServer); err != nil {
		t.Fatal(err)
	}
	thaw := sync.OnceValue(func() error { return b.east.Continue(context.Background(), lab.APIServer) })
	t.Cleanup(func() { _ = thaw() })
	for restarts := 1; restarts <= 2; restarts++ {
		if _, err := b.agent.Signal(b.namespace, "web", syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		b.eventually("another process answers", func(context.Context) error {
			if p := processesIn(b.agent, b.namespace); len(p) != 1 || p[0].Restarts != restarts {
				return fmt.Errorf("there is %v", p)
			}
			_, err := b.ask(pod, "/env")
			return err
		})
	}
	if err := thaw(); err != nil {
		t.Fatal(err)
	}
	b.eventually("the Pod tells of both restarts", func(ctx context.Context) error {
		pods, err := b.pods(ctx, "web")
		if err != nil || len(pods) != 1 || !isReady(&pods[0]) || pods[0].Status.ContainerStatuses[0].RestartCount != 2 {
			return fmt.Errorf("have %s, %w", describe(pods), err)
		}
		return nil
	})
}

// A new agent finds the Pods of the old one, starts their processes again, and
// goes on counting.
func TestAgentRestart(t *testing.T) {
	b := newBench(t)
	b.create(b.pod("web"))
	before := b.readyPod("web")
	process := b.process(before)
	b.stop()
	if alive(process.PID) {
		t.Errorf("process %d outlived the agent", process.PID)
	}
	b.startAgent()
	var after *corev1.Pod
	b.eventually("the Pod runs again", func(ctx context.Context) error {
		pods, err := b.pods(ctx, "web")
		if err != nil || len(pods) != 1 || !isReady(&pods[0]) || pods[0].Status.ContainerStatuses[0].RestartCount != 1 {
			return fmt.Errorf("have %s, %w", describe(pods), err)
		}
		after = &pods[0]
		return nil
	})
	if after.Status.PodIP != before.Status.PodIP {
		t.Errorf("the address changed from %s to %s", before.Status.PodIP, after.Status.PodIP)
	}
	if _, err := b.ask(after, "/env"); err != nil {
		t.Error(err)
	}
}
