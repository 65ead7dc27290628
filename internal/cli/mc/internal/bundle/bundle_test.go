package bundle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const file = `# made elsewhere
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: w}
webhooks:
- clientConfig: {service: {name: s, namespace: theirs}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: theirs}}
- {apiVersion: example.com/v1, kind: Other, metadata: {name: o}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: kube-system}
subjects:
- {kind: ServiceAccount, name: a, namespace: theirs}
---
{apiVersion: v1, kind: Namespace, metadata: {name: theirs}}
`

func names(objects []*unstructured.Unstructured) (names []string) {
	for _, obj := range objects {
		names = append(names, strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetKind()+"/"+obj.GetName(), "/"))
	}
	return names
}

func TestReadMoveAndSort(t *testing.T) {
	objects, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if got := Namespace(objects); got != "theirs" {
		t.Errorf("the controller's Namespace is %q", got)
	}
	Move(objects, "theirs", "ours")
	Own(objects)
	Sort(objects)
	want := []string{"Namespace/ours", "kube-system/RoleBinding/reader", "Other/o", "ours/Deployment/d", "ValidatingWebhookConfiguration/w"}
	if diff := cmp.Diff(want, names(objects)); diff != "" {
		t.Error(diff)
	}
	subjects, _, _ := unstructured.NestedSlice(objects[1].Object, "subjects")
	webhooks, _, _ := unstructured.NestedSlice(objects[4].Object, "webhooks")
	for what, list := range map[string][]any{"subject": subjects, "webhook": webhooks} {
		if text := fmt.Sprint(list); strings.Contains(text, "theirs") || !strings.Contains(text, "namespace:ours") {
			t.Errorf("the %s was not moved: %s", what, text)
		}
	}
}

func TestParseRefusesWhatHoldsNoObject(t *testing.T) {
	for name, bad := range map[string]struct{ text, words string }{
		"nothing":            {"", "no object"},
		"only comments":      {"# one\n---\n# two\n", "no object"},
		"no YAML":            {"a: b: c", "document 1"},
		"an HTML page":       {"<html>not found</html>", "document 1"},
		"the second is none": {"{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\nkind: Secret\n", "document 2: no object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(bad.text))
			if err == nil || !strings.Contains(err.Error(), bad.words) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What upstream's controllers need of the API server's own configuration is in
// kube-system, wherever they run.
func TestMoveLeavesBindingsToForeignRoles(t *testing.T) {
	objects, err := Parse([]byte(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: own, namespace: kube-system}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: own, namespace: kube-system}
roleRef: {kind: Role, name: own}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: kube-system}
roleRef: {kind: Role, name: extension-apiserver-authentication-reader}
subjects:
- {kind: ServiceAccount, name: a, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer, namespace: kube-system}
roleRef: {kind: ClusterRole, name: view}
`))
	if err != nil {
		t.Fatal(err)
	}
	Move(objects, "kube-system", "ours")
	if diff := cmp.Diff([]string{"ours/Role/own", "ours/RoleBinding/own", "kube-system/RoleBinding/reader", "ours/RoleBinding/viewer"}, names(objects)); diff != "" {
		t.Error(diff)
	}
	subjects, _, _ := unstructured.NestedSlice(objects[2].Object, "subjects")
	if text := fmt.Sprint(subjects); !strings.Contains(text, "namespace:ours") {
		t.Errorf("the right stays with the one who has moved away: %s", text)
	}
}

func TestPlaceAndElsewhere(t *testing.T) {
	objects, err := Parse([]byte(`
{apiVersion: v1, kind: ServiceAccount, metadata: {name: nowhere}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: there, namespace: theirs}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: brought, namespace: own}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: own}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec: {group: example.com, scope: Namespaced, names: {kind: Thing}}
---
{apiVersion: example.com/v1, kind: Thing, metadata: {name: new}}
`))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	err = Place(objects, "ours", func(obj *unstructured.Unstructured) (bool, error) {
		asked++
		return obj.GetKind() == "ServiceAccount", nil
	})
	if err != nil || asked != 3 { // not for the kind that the file brings
		t.Errorf("asked for %d; %v", asked, err)
	}
	want := []string{"ours/ServiceAccount/nowhere", "theirs/ServiceAccount/there", "own/ConfigMap/brought", "Namespace/own",
		"CustomResourceDefinition/things.example.com", "ours/Thing/new"}
	if diff := cmp.Diff(want, names(objects)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"ours", "theirs"}, Elsewhere(objects)); diff != "" {
		t.Error(diff)
	}
	unknown := Place([]*unstructured.Unstructured{{Object: map[string]any{"kind": "Odd", "metadata": map[string]any{"name": "o"}}}}, "ours",
		func(*unstructured.Unstructured) (bool, error) { return false, fmt.Errorf("no such kind") })
	if unknown == nil || !strings.Contains(unknown.Error(), `Odd "o": no such kind`) {
		t.Error(unknown)
	}
}
