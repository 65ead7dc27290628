package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

var roles = []Role{Leader, Member}

func render(t *testing.T, role Role, options Options) []*unstructured.Unstructured {
	t.Helper()
	objects, err := Render(role, options)
	if err != nil {
		t.Fatalf("Render(%s): %v", role, err)
	}
	return objects
}

// id names an object as the API server tells it from others.
func id(obj *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", obj.GetKind(), obj.GetNamespace(), obj.GetName())
}

// installed lists the ids of what is not a CRD.
func installed(objects []*unstructured.Unstructured) []string {
	var ids []string
	for _, obj := range objects {
		if obj.GetKind() != "CustomResourceDefinition" {
			ids = append(ids, id(obj))
		}
	}
	return ids
}

func deployment(t *testing.T, objects []*unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	return find[appsv1.Deployment](t, objects, "Deployment")
}

func find[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) *T {
	t.Helper()
	for _, obj := range objects {
		if obj.GetKind() == kind {
			into := new(T)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into); err != nil {
				t.Fatal(err)
			}
			return into
		}
	}
	t.Fatalf("no %s was rendered", kind)
	return nil
}

func TestRenderUsesTheNamesOfTheWire(t *testing.T) {
	cases := map[Role][]string{
		Leader: {
			"Namespace /antrea-multicluster",
			"ServiceAccount antrea-multicluster/antrea-mc-controller",
			"ClusterRole /antrea-multicluster-antrea-mc-controller-webhook-role",
			"ClusterRoleBinding /antrea-multicluster-antrea-mc-controller-webhook-rolebinding",
			"Role antrea-multicluster/antrea-mc-controller-role",
			"Role antrea-multicluster/antrea-mc-member-cluster-role",
			"RoleBinding antrea-multicluster/antrea-mc-controller-rolebinding",
			"ConfigMap antrea-multicluster/antrea-mc-controller-config",
			"Secret antrea-multicluster/antrea-mc-webhook-certificate",
			"Service antrea-multicluster/antrea-mc-webhook-service",
			"PodDisruptionBudget antrea-multicluster/antrea-mc-controller",
			"Deployment antrea-multicluster/antrea-mc-controller",
		},
		// kube-system is neither made nor, on removal, deleted.
		Member: {
			"ServiceAccount kube-system/antrea-mc-controller",
			"ClusterRole /antrea-mc-controller-role",
			"ClusterRoleBinding /antrea-mc-controller-rolebinding",
			"Role kube-system/antrea-mc-controller-role",
			"RoleBinding kube-system/antrea-mc-controller-rolebinding",
			"ConfigMap kube-system/antrea-mc-controller-config",
			"Secret kube-system/antrea-mc-webhook-certificate",
			"Service kube-system/antrea-mc-webhook-service",
			"PodDisruptionBudget kube-system/antrea-mc-controller",
			"Deployment kube-system/antrea-mc-controller",
		},
	}
	configurations := map[Role][]string{
		Leader: {
			"MutatingWebhookConfiguration /antrea-multicluster-antrea-mc-mutating-webhook-configuration",
			"ValidatingWebhookConfiguration /antrea-multicluster-antrea-mc-validating-webhook-configuration",
		},
		Member: {"ValidatingWebhookConfiguration /antrea-mc-validating-webhook-configuration"},
	}
	for role, want := range cases {
		if diff := cmp.Diff(want, installed(render(t, role, Options{}))); diff != "" {
			t.Errorf("%s: %s", role, diff)
		}
		if diff := cmp.Diff(slices.Concat(want, configurations[role]), installed(render(t, role, Options{Admission: true}))); diff != "" {
			t.Errorf("%s with admission: %s", role, diff)
		}
	}
}

// Upstream's installer replaced text, and for a leader nothing at all.
func TestWK_17_EveryObjectFollowsTheNamespace(t *testing.T) {
	for _, role := range roles {
		objects := render(t, role, Options{Namespace: "elsewhere", Admission: true})
		for _, obj := range objects {
			if obj.GetKind() == "CustomResourceDefinition" {
				continue
			}
			text, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			for _, old := range []string{`"antrea-multicluster"`, `"kube-system"`} {
				if strings.Contains(string(text), old) {
					t.Errorf("%s: %s still speaks of %s: %s", role, id(obj), old, text)
				}
			}
		}
		if ids := installed(objects); !slices.Contains(ids, "Namespace /elsewhere") {
			t.Errorf("%s: the Namespace is not made: %v", role, ids)
		}
	}
}

func TestWK_17_EveryObjectComesAfterWhatItNeeds(t *testing.T) {
	for _, role := range roles {
		last := 0
		for _, obj := range render(t, role, Options{Namespace: "elsewhere", Admission: true}) {
			at := slices.Index(creationOrder, obj.GetKind())
			if at < last {
				t.Errorf("%s: %s comes after a %s", role, id(obj), creationOrder[last])
			}
			last = at
		}
	}
}

func TestWK_27_TwoInstallationsShareACluster(t *testing.T) {
	type installation struct {
		role      Role
		namespace string
	}
	cases := map[string][]installation{
		"a leader and a member, as by default":           {{Leader, ""}, {Member, ""}},
		"a leader and a member in Namespaces of choice":  {{Leader, "one"}, {Member, "two"}},
		"two leaders, two common areas":                  {{Leader, ""}, {Leader, "two"}},
		"two members would still not share their rights": {{Member, ""}, {Member, "two"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			seen := map[string]*unstructured.Unstructured{}
			for _, i := range c {
				for _, obj := range render(t, i.role, Options{Namespace: i.namespace, Admission: true}) {
					other, clash := seen[id(obj)]
					if clash && obj.GetKind() != "CustomResourceDefinition" {
						t.Errorf("both installations have %s", id(obj))
					}
					if clash && !cmp.Equal(obj, other) {
						t.Errorf("the installations differ about %s", id(obj))
					}
					seen[id(obj)] = obj
				}
			}
		})
	}
}

func TestWK_27_ControllersDoNotUseTheNetworkOfTheirNode(t *testing.T) {
	for _, role := range roles {
		pod := deployment(t, render(t, role, Options{})).Spec.Template.Spec
		if pod.HostNetwork {
			t.Errorf("%s: hostNetwork is set", role)
		}
		for _, port := range pod.Containers[0].Ports {
			if port.HostPort != 0 {
				t.Errorf("%s: port %q takes port %d of the Node", role, port.Name, port.HostPort)
			}
		}
	}
}

func TestRenderChangesWhatTheOptionsSay(t *testing.T) {
	for _, role := range roles {
		d := deployment(t, render(t, role, Options{Image: "registry.example.com/lockstep:v1", Replicas: 3}))
		if got := d.Spec.Template.Spec.Containers[0].Image; got != "registry.example.com/lockstep:v1" {
			t.Errorf("%s: image is %q", role, got)
		}
		if got := *d.Spec.Replicas; got != 3 {
			t.Errorf("%s: replicas is %d", role, got)
		}

		d = deployment(t, render(t, role, Options{}))
		if got := d.Spec.Template.Spec.Containers[0].Image; got != "lockstep:latest" {
			t.Errorf("%s: default image is %q", role, got)
		}
		if got := *d.Spec.Replicas; got != 2 {
			t.Errorf("%s: default replicas is %d", role, got)
		}
	}
}

func TestRenderChangesThePodsAsTheOptionsSay(t *testing.T) {
	for _, role := range roles {
		d := deployment(t, render(t, role, Options{Verbose: true, Pod: func(pod *corev1.PodSpec) {
			pod.PriorityClassName = "system-cluster-critical"
			pod.Containers[0].Args = append(pod.Containers[0].Args, "--workers=2")
		}}))
		pod := d.Spec.Template.Spec
		if pod.PriorityClassName != "system-cluster-critical" {
			t.Errorf("%s: priority class is %q", role, pod.PriorityClassName)
		}
		// Pod comes last, so it sees what the other options did.
		want := []string{"run", string(role), "--config", "/etc/lockstep/controller_manager_config.yaml", "--verbose", "--workers=2"}
		if diff := cmp.Diff(want, pod.Containers[0].Args); diff != "" {
			t.Errorf("%s: args: %s", role, diff)
		}
	}
}

func TestConfigureChangesTheFileAndRollsThePods(t *testing.T) {
	for _, role := range roles {
		before := render(t, role, Options{})
		after := render(t, role, Options{Configure: func(c *v1alpha1.MultiClusterConfig) {
			c.EndpointIPType = v1alpha1.EndpointIPTypePodIP
		}})

		got, want := settings(t, after), settings(t, before)
		want.EndpointIPType = v1alpha1.EndpointIPTypePodIP
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: more than one setting changed: %s", role, diff)
		}
		hash := func(objects []*unstructured.Unstructured) string {
			return deployment(t, objects).Spec.Template.Annotations[ConfigHashAnnotation]
		}
		if hash(before) == hash(after) {
			t.Errorf("%s: the Pods would keep running with the old file", role)
		}
	}
}

// Probes ask one port. A controller that answers at another is never ready.
func TestTheHealthPortIsThatOfTheProbes(t *testing.T) {
	for _, role := range roles {
		for address, fits := range map[string]bool{"": true, ":8080": true, "0.0.0.0:8080": true, ":9440": false, ":18081": false} {
			_, err := Render(role, Options{Configure: func(c *v1alpha1.MultiClusterConfig) { c.Health.HealthProbeBindAddress = address }})
			if (err == nil) != fits {
				t.Errorf("%s at %q: %v", role, address, err)
			}
		}
		for _, probe := range []*corev1.Probe{
			deployment(t, render(t, role, Options{})).Spec.Template.Spec.Containers[0].LivenessProbe,
			deployment(t, render(t, role, Options{})).Spec.Template.Spec.Containers[0].ReadinessProbe,
		} {
			if ":"+probe.HTTPGet.Port.String() != probedPort {
				t.Errorf("%s: a probe asks port %s", role, probe.HTTPGet.Port.String())
			}
		}
	}
}

// settings reads the configuration file as the controller does.
func settings(t *testing.T, objects []*unstructured.Unstructured) v1alpha1.MultiClusterConfig {
	t.Helper()
	var into v1alpha1.MultiClusterConfig
	text := find[corev1.ConfigMap](t, objects, "ConfigMap").Data[v1alpha1.ControllerConfigKey]
	if err := yaml.UnmarshalStrict([]byte(text), &into); err != nil {
		t.Fatalf("the configuration file: %v", err)
	}
	return into
}

func TestConfigurationFile(t *testing.T) {
	for _, role := range roles {
		c := settings(t, render(t, role, Options{}))
		if c.APIVersion != v1alpha1.GroupVersion.String() || c.Kind != v1alpha1.KindMultiClusterConfig {
			t.Errorf("%s: the file is a %s %s", role, c.APIVersion, c.Kind)
		}
		if c.Health.HealthProbeBindAddress != ":8080" {
			t.Errorf("%s: probes are answered on %q, the Deployment asks port 8080", role, c.Health.HealthProbeBindAddress)
		}
	}
}

func TestControllerPods(t *testing.T) {
	for _, role := range roles {
		pod := deployment(t, render(t, role, Options{})).Spec.Template.Spec
		c := pod.Containers[0]

		wantArgs := []string{"run", string(role), "--config", "/etc/lockstep/controller_manager_config.yaml"}
		if diff := cmp.Diff(wantArgs, c.Args); diff != "" {
			t.Errorf("%s: args: %s", role, diff)
		}
		var env []string
		for _, e := range c.Env {
			env = append(env, e.Name+"="+e.ValueFrom.FieldRef.FieldPath)
		}
		wantEnv := []string{"POD_NAME=metadata.name", "POD_UID=metadata.uid", "POD_NAMESPACE=metadata.namespace", "POD_IP=status.podIP"}
		if diff := cmp.Diff(wantEnv, env); diff != "" {
			t.Errorf("%s: env: %s", role, diff)
		}
		for path, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
			if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.IntValue() != 8080 {
				t.Errorf("%s: no probe asks %s on port 8080", role, path)
			}
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: requests or limits are missing: %v", role, c.Resources)
		}
	}
}

// The Pod Security Standard "restricted", field by field, and a root file
// system nobody can write to.
func TestControllerPodsAreRestricted(t *testing.T) {
	for _, role := range roles {
		pod := deployment(t, render(t, role, Options{})).Spec.Template.Spec
		context := pod.Containers[0].SecurityContext
		checks := map[string]bool{
			"runs as non-root":              *pod.SecurityContext.RunAsNonRoot,
			"seccomp profile":               pod.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
			"no privilege escalation":       !*context.AllowPrivilegeEscalation,
			"read-only root file system":    *context.ReadOnlyRootFilesystem,
			"no capabilities":               cmp.Equal(context.Capabilities, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}),
			"no namespaces of the Node":     !pod.HostPID && !pod.HostIPC && !pod.HostNetwork,
			"only volumes of configuration": len(pod.Volumes) == 1 && pod.Volumes[0].ConfigMap != nil,
		}
		for check, passed := range checks {
			if !passed {
				t.Errorf("%s: %s: not so", role, check)
			}
		}
	}
}

func TestEveryObjectCarriesTheMark(t *testing.T) {
	for _, role := range roles {
		for _, obj := range render(t, role, Options{Namespace: "elsewhere", Admission: true}) {
			if obj.GetLabels()[ManagedByLabel] != ManagedBy {
				t.Errorf("%s: %s has no label %s=%s", role, id(obj), ManagedByLabel, ManagedBy)
			}
			if _, ok := obj.Object["status"]; ok && obj.GetKind() != "CustomResourceDefinition" {
				t.Errorf("%s: %s carries a status", role, id(obj))
			}
		}
	}
}

func TestRenderReportsAllProblemsTogether(t *testing.T) {
	_, err := Render(Leader, Options{Namespace: "Not_A_Name", Image: "a b", Replicas: -1})
	if err == nil {
		t.Fatal("bad options were accepted")
	}
	for _, want := range []string{`namespace "Not_A_Name"`, `image "a b"`, "replicas -1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error says nothing of %s: %v", want, err)
		}
	}
	if _, err := Render("gateway", Options{}); err == nil || !strings.Contains(err.Error(), `"gateway"`) {
		t.Errorf("Render of an unknown role: %v", err)
	}
}
