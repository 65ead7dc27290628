package charts_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	helmcommon "helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	plainyaml "sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/tools/charts"
)

// objects are manifests by what the API server tells them from others by.
type objects map[string]*unstructured.Unstructured

func byID(list []*unstructured.Unstructured) (objects, error) {
	found := objects{}
	for _, obj := range list {
		id := fmt.Sprintf("%s %s/%s", obj.GroupVersionKind().GroupKind(), obj.GetNamespace(), obj.GetName())
		if _, twice := found[id]; twice {
			return nil, fmt.Errorf("%s is there twice", id)
		}
		// One way to read numbers and empty values, whoever wrote the text.
		text, err := plainyaml.Marshal(obj.Object)
		if err != nil {
			return nil, err
		}
		again := &unstructured.Unstructured{}
		if err := plainyaml.UnmarshalStrict(text, &again.Object); err != nil {
			return nil, err
		}
		found[id] = again
	}
	return found, nil
}

func parse(text []byte) (objects, error) {
	var list []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return byID(list)
		}
		if err != nil {
			return nil, err
		}
		if len(obj.Object) > 0 {
			list = append(list, obj)
		}
	}
}

// without leaves out the kinds.
func (o objects) without(kinds ...string) objects {
	rest := objects{}
	for id, obj := range o {
		keep := true
		for _, kind := range kinds {
			keep = keep && obj.GetKind() != kind
		}
		if keep {
			rest[id] = obj
		}
	}
	return rest
}

// rendered is what the program itself installs.
func rendered(role config.Role, options config.Options) (objects, error) {
	list, err := config.Render(role, options)
	if err != nil {
		return nil, err
	}
	return byID(list)
}

// helm is what `helm template` prints.
func helm(chart, namespace string, values map[string]any) (objects, error) {
	loaded, err := loader.Load(folder(chart))
	if err != nil {
		return nil, err
	}
	release := helmcommon.ReleaseOptions{Name: chart, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(loaded, values, release, helmcommon.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.RenderWithContext(context.Background(), loaded, all)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	for name, content := range files {
		if path.Ext(name) == ".yaml" {
			text.WriteString("\n---\n" + content)
		}
	}
	return parse([]byte(text.String()))
}

// kustomize is what `kubectl kustomize` prints.
func kustomize(dir string) (objects, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // the files say which order
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// same compares what is installed, and of the configuration file what it says:
// its bytes, and with them its hash on the Pods, depend on who wrote them.
func same(want, got objects) error {
	for _, all := range []objects{want, got} {
		for _, obj := range all {
			if obj.GetKind() == "Deployment" {
				unstructured.RemoveNestedField(obj.Object, "spec", "template", "metadata", "annotations", config.ConfigHashAnnotation)
			}
			if obj.GetKind() != "ConfigMap" {
				continue
			}
			text, _, err := unstructured.NestedString(obj.Object, "data", v1alpha1.ControllerConfigKey)
			if err != nil {
				return err
			}
			var settings v1alpha1.MultiClusterConfig
			if err := plainyaml.UnmarshalStrict([]byte(text), &settings); err != nil {
				return fmt.Errorf("the configuration file: %w", err)
			}
			if err := unstructured.SetNestedField(obj.Object, fmt.Sprintf("%+v, webhook port %v", settings, settings.Webhook.Port != nil), "data", v1alpha1.ControllerConfigKey); err != nil {
				return err
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New(diff)
	}
	return nil
}

// hashed tells whether the Pods carry the hash of the file beside them, which is
// what replaces them when it changes.
func hashed(all objects) error {
	var text, annotation string
	for _, obj := range all {
		switch obj.GetKind() {
		case "ConfigMap":
			text, _, _ = unstructured.NestedString(obj.Object, "data", v1alpha1.ControllerConfigKey)
		case "Deployment":
			annotation, _, _ = unstructured.NestedString(obj.Object, "spec", "template", "metadata", "annotations", config.ConfigHashAnnotation)
		}
	}
	sum := sha256.Sum256([]byte(text))
	if want := hex.EncodeToString(sum[:8]); annotation != want {
		return fmt.Errorf("annotation %s is %q, the file has %q:\n%s", config.ConfigHashAnnotation, annotation, want, text)
	}
	return nil
}

var namespaces = map[config.Role]string{
	config.Leader: v1alpha1.DefaultLeaderNamespace,
	config.Member: v1alpha1.DefaultMemberNamespace,
}

// Three ways to install, one result, byte for byte of every field, whether the API
// server asks about writes or not.
func TestDefaultsAreTheSameEverywhere(t *testing.T) {
	for chart, role := range charts.Roles {
		for _, admission := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, admission %v", role, admission), func(t *testing.T) {
				want, err := rendered(role, config.Options{Admission: admission})
				if err != nil {
					t.Fatal(err)
				}
				folder := "../../config/" + string(role)
				if admission {
					folder = "../../config/admission/" + string(role)
				}
				built, err := kustomize(folder)
				if err != nil {
					t.Fatalf("kustomize: %v", err)
				}
				if diff := cmp.Diff(want, built); diff != "" {
					t.Errorf("kustomize makes something else: %s", diff)
				}
				installed, err := helm(chart, namespaces[role], map[string]any{"admission": map[string]any{"enabled": admission}})
				if err != nil {
					t.Fatalf("Helm: %v", err)
				}
				// Helm makes the Namespace before its first record, and would delete one
				// that is part of a release together with all that users wrote there.
				if diff := cmp.Diff(want.without("Namespace", "CustomResourceDefinition"), installed); diff != "" {
					t.Errorf("Helm makes something else: %s", diff)
				}
			})
		}
		unasked, err := helm(chart, namespaces[role], nil)
		if err != nil {
			t.Fatal(err)
		}
		if rest := unasked.without("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"); len(rest) != len(unasked) {
			t.Errorf("%s: webhook configurations are installed unasked", chart)
		}
	}
}

// The chart of the kinds has those of the roles that are asked for, and keeps
// them and the objects of users on uninstall.
func TestCRDChartHasTheKindsOfItsRoles(t *testing.T) {
	cases := map[string]struct {
		values map[string]any
		roles  []config.Role
		mcsAPI bool
	}{
		"both, by default": {nil, []config.Role{config.Leader, config.Member}, true},
		"a leader":         {map[string]any{"roles": []any{"leader"}}, []config.Role{config.Leader}, true},
		"a member":         {map[string]any{"roles": []any{"member"}}, []config.Role{config.Member}, true},
		"a member beside another project's MCS API": {map[string]any{"roles": []any{"member"}, "mcsAPI": false}, []config.Role{config.Member}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := objects{}
			for _, role := range c.roles {
				crds, err := config.CRDs(role)
				if err != nil {
					t.Fatal(err)
				}
				all, err := byID(crds)
				if err != nil {
					t.Fatal(err)
				}
				for id, crd := range all {
					if c.mcsAPI || !strings.HasSuffix(crd.GetName(), ".multicluster.x-k8s.io") {
						want[id] = crd
					}
				}
			}
			got, err := helm(charts.CRDs, "kube-system", c.values)
			if err != nil {
				t.Fatal(err)
			}
			for id, crd := range got {
				if kept := crd.GetAnnotations()["helm.sh/resource-policy"]; kept != "keep" {
					t.Errorf("%s would be deleted with the release: its policy is %q", id, kept)
				}
				unstructured.RemoveNestedField(crd.Object, "metadata", "annotations", "helm.sh/resource-policy")
				if len(crd.GetAnnotations()) == 0 {
					unstructured.RemoveNestedField(crd.Object, "metadata", "annotations")
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// No object of a role's chart can hold what users wrote: uninstalling a
// controller deletes nothing else. The one Secret comes empty and is filled by the
// controller with a key that nobody else needs.
func TestRoleChartsHoldNoData(t *testing.T) {
	for chart, role := range charts.Roles {
		installed, err := helm(chart, namespaces[role], map[string]any{"admission": map[string]any{"enabled": true}})
		if err != nil {
			t.Fatal(err)
		}
		for id, obj := range installed {
			switch obj.GroupVersionKind().Group {
			case "", "apps", "policy", "rbac.authorization.k8s.io", "admissionregistration.k8s.io":
			default:
				t.Errorf("%s: %s", chart, id)
			}
			switch obj.GetKind() {
			case "Namespace", "PersistentVolumeClaim":
				t.Errorf("%s: %s", chart, id)
			case "Secret":
				if obj.GetName() != config.WebhookSecret || obj.Object["data"] != nil || obj.Object["stringData"] != nil {
					t.Errorf("%s: %s", chart, id)
				}
			}
		}
	}
}

// The examples of config/overlay say what Render says with these options.
func TestOverlaysAreWhatRenderMakes(t *testing.T) {
	image := "registry.example.com/lockstep:v1.2.3"
	cases := map[config.Role]config.Options{
		config.Leader: {Namespace: "common-area", Image: image, Replicas: 3, Admission: true, Pod: memoryLimit("1Gi")},
		config.Member: {Namespace: "fleet", Image: image, Admission: true, Configure: func(c *v1alpha1.MultiClusterConfig) {
			c.EndpointIPType = v1alpha1.EndpointIPTypePodIP
		}},
	}
	for role, options := range cases {
		want, err := rendered(role, options)
		if err != nil {
			t.Fatal(err)
		}
		got, err := kustomize("../../config/overlay/" + string(role))
		if err != nil {
			t.Fatalf("%s: %v", role, err)
		}
		if err := same(want, got); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
}
