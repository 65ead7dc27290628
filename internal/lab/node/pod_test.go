package node_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dev/lockstep/internal/lab/node"
	"github.com/lockstep-dev/lockstep/internal/lab/node/podaddr"
)

func TestNodeIsReady(t *testing.T) {
	b := newBench(t)
	b.eventually("the Node is ready and its Lease is held", func(ctx context.Context) error {
		n, err := b.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				return fmt.Errorf("the Node is %v", c)
			}
		}
		if len(n.Spec.Taints) > 0 {
			return fmt.Errorf("the Node has taints %v", n.Spec.Taints)
		}
		lease, err := b.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, nodeName, metav1.GetOptions{})
		if err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") != nodeName {
			err = fmt.Errorf("the Lease is %v", lease.Spec)
		}
		return err
	})
}

func TestJobs(t *testing.T) {
	b := newBench(t)
	for name, test := range map[string]struct {
		code   string
		policy corev1.RestartPolicy
		want   batchv1.JobConditionType
	}{
		"good":        {"0", corev1.RestartPolicyNever, batchv1.JobComplete},
		"bad":         {"3", corev1.RestartPolicyNever, batchv1.JobFailed},
		"bad-retried": {"3", corev1.RestartPolicyOnFailure, batchv1.JobFailed},
	} {
		spec := b.podSpec("exit", test.code)
		spec.RestartPolicy = test.policy
		b.create(&batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       batchv1.JobSpec{BackoffLimit: ptr.To[int32](0), Template: corev1.PodTemplateSpec{Spec: spec}},
		})
		b.eventually("Job "+name+" is "+string(test.want), func(ctx context.Context) error {
			job, err := b.client.BatchV1().Jobs(b.namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, c := range job.Status.Conditions {
				if c.Type == test.want && c.Status == corev1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("it is %+v", job.Status)
		})
	}
}

// A foreign Pod that a finalizer keeps shows that it has ended: Job controllers
// wait for that before they let go.
func TestForeignPodWithFinalizerEnds(t *testing.T) {
	b := newBench(t)
	pod := b.pod("held")
	pod.Spec.Containers[0].Image = "nginx"
	pod.Finalizers = []string{"lab.example/held"}
	b.create(pod)
	pod = b.readyPod("held")
	b.delete(pod, 30)
	b.eventually("the Pod has failed", func(ctx context.Context) error {
		pods, err := b.pods(ctx, "held")
		if err != nil || len(pods) != 1 || pods[0].Status.Phase != corev1.PodFailed {
			return fmt.Errorf("have %s, %w", describe(pods), err)
		}
		return nil
	})
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := b.client.CoreV1().Pods(b.namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	b.noPods("held")
}

func TestWhatIsMissingIsAwaited(t *testing.T) {
	b := newBench(t)
	pod := b.pod("web")
	pod.Spec.Volumes = []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "serving"}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "tls", MountPath: "/tls"}}
	pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{
		Name: "COLOR", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "color"}}})
	b.create(pod)
	b.event(pod, "FailedMount", `Secret "serving" does not exist`)
	b.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "serving"}})
	b.event(pod, "Failed", `ConfigMap "settings/color" does not exist`)
	b.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"color": "blue"}})
	b.readyPod("web")
}

// What fails without a watch to tell when it works again is tried again.
func TestTokenIsAwaited(t *testing.T) {
	b := newBench(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "seller"}}
	pod := b.pod("web")
	pod.Spec.ServiceAccountName = "seller"
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "lab.example/wait"}}
	b.create(account, pod)
	if err := b.client.CoreV1().ServiceAccounts(b.namespace).Delete(t.Context(), "seller", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	open := []byte(`{"spec":{"schedulingGates":null}}`)
	if _, err := b.client.CoreV1().Pods(b.namespace).Patch(t.Context(), "web", types.MergePatchType, open, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	b.event(pod, "FailedMount", `cannot get a token for ServiceAccount "seller"`)
	b.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "seller"}})
	b.readyPod("web")
}

func TestWhatCannotBeDoneIsRefused(t *testing.T) {
	b := newBench(t)
	pod := b.pod("web")
	pod.Spec.Volumes = []corev1.Volume{{Name: "etc", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "etc", MountPath: "/host"}}
	b.create(pod)
	b.event(pod, "Refused", `volume "etc": hostPath "/etc" is refused`)
	if left := processesIn(b.agent, b.namespace); len(left) > 0 {
		t.Errorf("it runs all the same: %v", left)
	}
}

func TestNamespaceDeletionFinishes(t *testing.T) {
	b := newBench(t)
	foreign := b.pod("foreign")
	foreign.Spec.Containers[0].Image = "nginx"
	b.create(b.pod("web"), foreign)
	b.readyPod("web")
	b.readyPod("foreign")
	if err := b.client.CoreV1().Namespaces().Delete(t.Context(), b.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.eventually("the namespace is gone", func(ctx context.Context) error {
		ns, err := b.client.CoreV1().Namespaces().Get(ctx, b.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is %v, %w", ns.Status, err)
	})
	if left := processesIn(b.agent, b.namespace); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// A Pod may have parts of both kinds: the local ones run, the foreign ones are
// said to run, and what only a foreign one mounts is nobody's affair here.
func TestMixedPod(t *testing.T) {
	b := newBench(t)
	pod := b.pod("web")
	prepare := *pod.Spec.Containers[0].DeepCopy()
	prepare.Name, prepare.Args, prepare.ReadinessProbe = "prepare", []string{"write", "/work/page", "hello from $(POD_IP)"}, nil
	prepare.VolumeMounts = []corev1.VolumeMount{{Name: "work", MountPath: "/work"}}
	pod.Spec.InitContainers = []corev1.Container{prepare}
	main := &pod.Spec.Containers[0]
	main.Args = []string{"serve", "/work/page"}
	main.VolumeMounts = prepare.VolumeMounts
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
		Name: "proxy", Image: "envoy", VolumeMounts: []corev1.VolumeMount{{Name: "host", MountPath: "/host"}},
	})
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}},
	}
	b.create(pod)
	pod = b.readyPod("web")
	want := "hello from " + podaddr.Twin(netip.MustParseAddr(pod.Status.PodIP)).String()
	if got, err := b.ask(pod, "/arg?n=0"); err != nil || got != want {
		t.Errorf("the page says %q, %v; want %q", got, err, want)
	}
	if running := processesIn(b.agent, b.namespace); len(running) != 1 {
		t.Errorf("processes: %v; want main alone", running)
	}
}

// A process that fails says why in the Pod's status, when asked to.
func TestLastWords(t *testing.T) {
	b := newBench(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "task", Labels: map[string]string{"app": "task"}}, Spec: b.podSpec("exit", "7")}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Containers[0].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	b.create(pod)
	b.eventually("the Pod has failed with its last words", func(ctx context.Context) error {
		pods, err := b.pods(ctx, "task")
		if err != nil || len(pods) != 1 || pods[0].Status.Phase != corev1.PodFailed {
			return fmt.Errorf("have %s, %w", describe(pods), err)
		}
		end := pods[0].Status.ContainerStatuses[0].State.Terminated
		if end == nil || end.ExitCode != 7 || !strings.Contains(end.Message, "program started with [exit 7]") {
			return fmt.Errorf("it ended as %v", end)
		}
		return nil
	})
}

// pod is a Pod that serves.
func (b *bench) pod(app string) *corev1.Pod {
	spec := b.podSpec("serve")
	spec.Containers[0].ReadinessProbe = healthz()
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: app, Labels: map[string]string{"app": app}}, Spec: spec}
}

func (b *bench) delete(pod *corev1.Pod, grace int64) {
	b.Helper()
	if err := b.client.CoreV1().Pods(b.namespace).Delete(b.Context(), pod.Name, *metav1.NewDeleteOptions(grace)); err != nil {
		b.Fatal(err)
	}
}

// event waits for an event of a Pod.
func (b *bench) event(pod *corev1.Pod, reason, part string) {
	b.Helper()
	b.eventually("event "+reason, func(ctx context.Context) error {
		list, err := b.client.CoreV1().Events(b.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod.Name})
		if err != nil {
			return err
		}
		var have []string
		for _, e := range list.Items {
			if e.Reason == reason && strings.Contains(e.Message, part) {
				return nil
			}
			have = append(have, e.Reason+": "+e.Message)
		}
		return fmt.Errorf("there are %q", have)
	})
}

func processesIn(a *node.Agent, namespace string) (list []node.PodProcess) {
	for _, p := range a.Pods() {
		if p.Namespace == namespace {
			list = append(list, p)
		}
	}
	return list
}
