package policy

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// Kinds of Antrea that importing depends on.
var (
	Kind     = schema.GroupVersionKind{Group: "crd.antrea.io", Version: "v1beta1", Kind: "ClusterNetworkPolicy"}
	TierKind = schema.GroupVersionKind{Group: "crd.antrea.io", Version: "v1beta1", Kind: "Tier"}
)

// DefaultTier is where Antrea puts a policy that names no tier (WK-20).
const DefaultTier = "application"

// content is the spec of a policy as JSON values, without what is empty.
func content(p *v1alpha1.ClusterNetworkPolicy) (map[string]any, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	var spec map[string]any
	if err := utiljson.Unmarshal(text, &spec); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	return spec, nil
}

// equal compares two specs of the wire by what they say.
func equal(a, b *v1alpha1.ClusterNetworkPolicy) bool {
	if a == nil || b == nil {
		return a == b
	}
	left, errLeft := content(a)
	right, errRight := content(b)
	return errLeft == nil && errRight == nil && same(left, right, nil)
}

// fulfils tells whether a policy says what it should. Antrea completes what it
// stores: it names rules that have no name and fills in defaults. Without patience
// for that every look would write the policy anew.
func fulfils(spec map[string]any, policy *unstructured.Unstructured) bool {
	present, _, err := unstructured.NestedMap(policy.Object, "spec")
	return err == nil && same(spec, present, completed)
}

// completed tells whether a value that nobody wanted may have been filled in by
// Antrea. At other keys it is somebody's change.
func completed(key string, value any) bool {
	switch key {
	case "name":
		_, isText := value.(string)
		return isText
	case "tier":
		return value == DefaultTier
	case "scope":
		return value == "Cluster"
	case "enableLogging":
		return value == false
	}
	return false
}

// same compares JSON values. Numbers are equal by value, since 5 and 5.0 are one
// number that decoders give two types. A key that only got has is passed over
// when spare says so; nil says no.
func same(want, got any, spare func(key string, value any) bool) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		return ok && sameMaps(w, g, spare)
	case []any:
		g, ok := got.([]any)
		if !ok || len(w) != len(g) {
			return false
		}
		for i := range w {
			if !same(w[i], g[i], spare) {
				return false
			}
		}
		return true
	}
	if w, ok := number(want); ok {
		g, ok := number(got)
		return ok && w == g
	}
	return want == got
}

func sameMaps(want, got map[string]any, spare func(string, any) bool) bool {
	for key, value := range want {
		if there, ok := got[key]; !ok || !same(value, there, spare) {
			return false
		}
	}
	for key, value := range got {
		if _, wanted := want[key]; !wanted && (spare == nil || !spare(key, value)) {
			return false
		}
	}
	return true
}

func number(value any) (float64, bool) {
	switch n := value.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
