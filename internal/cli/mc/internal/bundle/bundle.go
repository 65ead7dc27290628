// Package bundle reads a file of manifests that somebody else wrote, puts it
// into another Namespace and into the order in which it can be created.
package bundle

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/lockstep-dev/lockstep/config"
)

// Parse reads YAML or JSON documents. Lists are taken apart. All documents that
// are no objects are named, by their number.
func Parse(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	var problems []error
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for number := 1; ; number++ {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		switch {
		case errors.Is(err, io.EOF):
			if len(objects) == 0 && len(problems) == 0 {
				return nil, errors.New("it holds no object")
			}
			return objects, errors.Join(problems...)
		case err != nil:
			return nil, fmt.Errorf("document %d: %w", number, err)
		case len(obj.Object) == 0: // nothing but a comment
		case obj.IsList():
			err = obj.EachListItem(func(item runtime.Object) error {
				return keep(&objects, item.(*unstructured.Unstructured))
			})
		default:
			err = keep(&objects, obj)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("document %d: %w", number, err))
		}
	}
}

func keep(objects *[]*unstructured.Unstructured, obj *unstructured.Unstructured) error {
	if obj.GetAPIVersion() == "" || obj.GetKind() == "" || obj.GetName() == "" {
		return errors.New("no object: it needs apiVersion, kind and metadata.name")
	}
	*objects = append(*objects, obj)
	return nil
}

// Namespace is that of the first Deployment, in which a controller runs; empty
// when there is none.
func Namespace(objects []*unstructured.Unstructured) string {
	for _, obj := range objects {
		if obj.GetKind() == "Deployment" {
			return obj.GetNamespace()
		}
	}
	return ""
}

// Move puts into Namespace to all that was in Namespace from: objects, and what
// they say of it under a key "namespace", such as the subjects of a binding and
// the Service of a webhook. A RoleBinding stays where its Role is: one to a Role
// that the file does not bring, such as extension-apiserver-authentication-reader
// in kube-system, would grant nothing elsewhere.
func Move(objects []*unstructured.Unstructured, from, to string) {
	for _, obj := range objects {
		if obj.GetKind() == "Namespace" && obj.GetName() == from {
			obj.SetName(to)
			continue
		}
		stays, namespace := bindsForeignRole(obj, objects), obj.GetNamespace()
		move(obj.Object, from, to)
		if stays {
			obj.SetNamespace(namespace)
		}
	}
}

// bindsForeignRole tells a RoleBinding whose Role is none of the objects.
func bindsForeignRole(obj *unstructured.Unstructured, objects []*unstructured.Unstructured) bool {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(obj.Object, fields...)
		return value
	}
	if obj.GetKind() != "RoleBinding" || text("roleRef", "kind") != "Role" {
		return false
	}
	return !slices.ContainsFunc(objects, func(other *unstructured.Unstructured) bool {
		return other.GetKind() == "Role" && other.GetName() == text("roleRef", "name")
	})
}

// Place puts into Namespace those objects that have to be in one and do not say in
// which, as kubectl -n does. The scope of a kind is what the file's own CRD says,
// else what namespaced answers.
func Place(objects []*unstructured.Unstructured, namespace string, namespaced func(*unstructured.Unstructured) (bool, error)) error {
	scopes := map[schema.GroupKind]string{}
	for _, obj := range objects {
		if obj.GetKind() == "CustomResourceDefinition" {
			text := func(fields ...string) string {
				value, _, _ := unstructured.NestedString(obj.Object, fields...)
				return value
			}
			scopes[schema.GroupKind{Group: text("spec", "group"), Kind: text("spec", "names", "kind")}] = text("spec", "scope")
		}
	}
	var problems []error
	for _, obj := range objects {
		if obj.GetNamespace() != "" {
			continue
		}
		scope, ours := scopes[obj.GroupVersionKind().GroupKind()]
		is, err := scope == "Namespaced", error(nil)
		if !ours {
			is, err = namespaced(obj)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %q: %w", obj.GetKind(), obj.GetName(), err))
		}
		if is {
			obj.SetNamespace(namespace)
		}
	}
	return errors.Join(problems...)
}

// Elsewhere are the Namespaces, sorted, that objects are in, but for those that
// the objects bring themselves.
func Elsewhere(objects []*unstructured.Unstructured) []string {
	brought, needed := map[string]bool{"": true}, map[string]bool{}
	for _, obj := range objects {
		if obj.GetKind() == "Namespace" {
			brought[obj.GetName()] = true
		}
		needed[obj.GetNamespace()] = true
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(needed)), func(name string) bool { return brought[name] })
}

func move(value any, from, to string) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if key == "namespace" && inner == from {
				value[key] = to
				continue
			}
			move(inner, from, to)
		}
	case []any:
		for _, inner := range value {
			move(inner, from, to)
		}
	}
}

// Own marks objects as made here: the proof that they may be replaced and
// removed.
func Own(objects []*unstructured.Unstructured) {
	for _, obj := range objects {
		labels := obj.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[config.ManagedByLabel] = config.ManagedBy
		obj.SetLabels(labels)
	}
}

// early and late kinds; all others come between. Webhooks are last: before
// their server runs they would refuse what comes after them.
var (
	early = []string{"Namespace", "CustomResourceDefinition", "PriorityClass", "ServiceAccount",
		"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Secret", "ConfigMap", "Service", "PodDisruptionBudget"}
	late = []string{"Deployment", "StatefulSet", "DaemonSet", "Job", "APIService",
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
)

// Sort puts objects into the order of their creation: by kind, and within a
// kind as they are.
func Sort(objects []*unstructured.Unstructured) {
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(rank(a.GetKind()), rank(b.GetKind()))
	})
}

func rank(kind string) int {
	if i := slices.Index(early, kind); i >= 0 {
		return i
	}
	if i := slices.Index(late, kind); i >= 0 {
		return len(early) + 1 + i
	}
	return len(early)
}
