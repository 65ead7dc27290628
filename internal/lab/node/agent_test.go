package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/lab/node"
)

// The life of a Deployment: configuration and identity, a killed process, a
// roll-out, the end.
func TestDeployment(t *testing.T) {
	b := newBench(t)
	b.create(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"color": "blue"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login"}, StringData: map[string]string{"password": "s3cret"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "seller"}},
		b.deployment("web"),
	)
	begin := time.Now()
	pod := b.readyPod("web")
	t.Logf("created, and ready after %s", time.Since(begin).Round(time.Millisecond))

	b.checkEnvironment(pod)
	if got, err := b.ask(pod, "/arg?n=0"); err != nil || got != "blue" {
		t.Errorf("the mounted ConfigMap says %q, %v; want blue", got, err)
	}
	want := "system:serviceaccount:" + b.namespace + ":seller"
	if got, err := b.ask(pod, "/whoami"); err != nil || got != want {
		t.Errorf("the process is known to the API server as %q, %v; want %q", got, err, want)
	}
	b.changeConfigMap(pod)
	b.killAndRecover(pod)
	next := b.rollOut(pod)
	b.deleteDeployment(next)
}

func (b *bench) checkEnvironment(pod *corev1.Pod) {
	b.Helper()
	text, err := b.ask(pod, "/env")
	if err != nil {
		b.Fatal(err)
	}
	env := strings.Split(text, "\n")
	twin := "127" + strings.TrimPrefix(pod.Status.PodIP, "10")
	for _, want := range []string{"POD_IP=" + twin, "PASSWORD=s3cret", "COLOR=blue", "URL=http://" + twin + "/", "POD_NAME=" + pod.Name} {
		if !slices.Contains(env, want) {
			b.Errorf("environment lacks %s", want)
		}
	}
	for _, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		if user := os.Getenv(name); name != "" && name != "PATH" && name != "HOME" && name != "TMPDIR" && name != "HOSTNAME" && user != "" {
			b.Errorf("the user's variable %s reached the process", name)
		}
	}
}

func (b *bench) changeConfigMap(pod *corev1.Pod) {
	b.Helper()
	_, err := b.client.CoreV1().ConfigMaps(b.namespace).Update(b.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"color": "green"}}, metav1.UpdateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.eventually("the process reads the changed ConfigMap", func(context.Context) error {
		got, err := b.ask(pod, "/arg?n=0")
		if err == nil && got != "green" {
			err = fmt.Errorf("it reads %q", got)
		}
		return err
	})
}

func (b *bench) killAndRecover(pod *corev1.Pod) {
	b.Helper()
	before, begin := b.process(pod), time.Now()
	if n, err := b.agent.Signal(b.namespace, "web", syscall.SIGKILL); n != 1 || err != nil {
		b.Fatalf("Signal = %d, %v; want one process", n, err)
	}
	b.eventually("the process was started again and is ready", func(ctx context.Context) error {
		pods, err := b.pods(ctx, "web")
		if err != nil || len(pods) != 1 {
			return fmt.Errorf("%s, %w", describe(pods), err)
		}
		status := pods[0].Status.ContainerStatuses[0]
		if status.RestartCount != 1 || !isReady(&pods[0]) {
			return errors.New(describe(pods))
		}
		last := status.LastTerminationState.Terminated
		if last == nil || last.ExitCode != 137 || last.Signal != 9 {
			return fmt.Errorf("lastState is %v", last)
		}
		return nil
	})
	b.Logf("killed, and ready again after %s", time.Since(begin).Round(time.Millisecond))
	after := b.process(pod)
	if after.PID == before.PID || after.Restarts != 1 {
		b.Errorf("process before %+v, after %+v", before, after)
	}
	for _, log := range []string{after.Log, after.Log + ".1"} {
		if data, err := os.ReadFile(log); err != nil || !strings.Contains(string(data), "program started") {
			b.Errorf("log %s: %q, %v", log, data, err)
		}
	}
}

func (b *bench) rollOut(old *corev1.Pod) *corev1.Pod {
	b.Helper()
	pid := b.process(old).PID
	deployment := b.deployment("web")
	deployment.Spec.Template.Annotations = map[string]string{"version": "2"}
	if _, err := b.client.AppsV1().Deployments(b.namespace).Update(b.Context(), deployment, metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
	next := b.readyPod("web", old)
	if alive(pid) {
		b.Errorf("process %d of the replaced Pod is alive", pid)
	}
	return next
}

func (b *bench) deleteDeployment(pod *corev1.Pod) {
	b.Helper()
	process, begin := b.process(pod), time.Now()
	if err := b.client.AppsV1().Deployments(b.namespace).Delete(b.Context(), "web", metav1.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
	b.noPods("web")
	b.Logf("deleted, and gone after %s", time.Since(begin).Round(time.Millisecond))
	if alive(process.PID) {
		b.Errorf("process %d of the deleted Pod is alive", process.PID)
	}
	b.eventually("nothing but logs is left", func(context.Context) error {
		entries, err := os.ReadDir(strings.TrimSuffix(process.Log, "/main.log"))
		for _, entry := range entries {
			if !strings.Contains(entry.Name(), ".log") {
				err = errors.Join(err, errors.New(entry.Name()))
			}
		}
		return err
	})
}

// process is the one process of a Pod.
func (b *bench) process(pod *corev1.Pod) node.PodProcess {
	b.Helper()
	for _, p := range b.agent.Pods() {
		if p.Namespace == pod.Namespace && p.Pod == pod.Name {
			return p
		}
	}
	b.Fatalf("Pod %s has no process; there are %v", pod.Name, b.agent.Pods())
	return node.PodProcess{}
}

func (b *bench) noPods(app string) {
	b.Helper()
	b.eventually("no Pod of app "+app+" is left", func(ctx context.Context) error {
		pods, err := b.pods(ctx, app)
		if err == nil && len(pods) > 0 {
			err = errors.New(describe(pods))
		}
		return err
	})
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func (b *bench) deployment(app string) *appsv1.Deployment {
	labels := map[string]string{"app": app}
	spec := b.podSpec("serve", "/etc/settings/color")
	spec.ServiceAccountName = "seller"
	spec.Volumes = []corev1.Volume{{Name: "settings", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}},
	}}}
	c := &spec.Containers[0]
	c.VolumeMounts = []corev1.VolumeMount{{Name: "settings", MountPath: "/etc/settings"}}
	c.ReadinessProbe = healthz()
	c.Env = append(c.Env,
		corev1.EnvVar{Name: "URL", Value: "http://$(POD_IP)/"},
		corev1.EnvVar{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		corev1.EnvVar{Name: "COLOR", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "color"}}},
		corev1.EnvVar{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "login"}, Key: "password"}}},
	)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}

// podSpec is one container that runs the test program.
func (b *bench) podSpec(args ...string) corev1.PodSpec {
	return corev1.PodSpec{NodeSelector: onNode(), Containers: []corev1.Container{{
		Name: "main", Image: image, Args: args,
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		Env: []corev1.EnvVar{{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}},
	}}}
}

func healthz() *corev1.Probe {
	return &corev1.Probe{
		PeriodSeconds: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")}},
	}
}

// create creates objects in the namespace of the test.
func (b *bench) create(objects ...client.Object) {
	b.Helper()
	for _, object := range objects {
		object.SetNamespace(b.namespace)
		if err := b.generic.Create(b.Context(), object); err != nil {
			b.Fatal(err)
		}
	}
}
