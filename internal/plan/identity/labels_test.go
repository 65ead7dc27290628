package identity_test

import (
	"fmt"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

func TestLabelIdentityNames(t *testing.T) {
	got := identity.LabelIdentityExportName("harbor", "ns:kubernetes.io/metadata.name=shop&pod:app=cart,tier=web")
	if want := "harbor-4692e58ec24d9902"; got != want { // as upstream names it
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDashPair(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"east", "east-1", true},
		{"east-1", "east", true},
		{"east", "east", false},  // the same cluster
		{"east", "east1", false}, // no dash
		{"east-1", "east-2", false},
		{"ea", "east-1", false},
		{"", "east", false},
	} {
		if got := identity.DashPair(c.a, c.b); got != c.want {
			t.Errorf("DashPair(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

func TestNormalizedLabel(t *testing.T) {
	got := identity.NormalizedLabel(map[string]string{"kubernetes.io/metadata.name": "shop"}, map[string]string{"tier": "web", "app": "cart"})
	if want := "ns:kubernetes.io/metadata.name=shop&pod:app=cart,tier=web"; got != want { // as upstream joins it
		t.Errorf("got %s, want %s", got, want)
	}
	if got := identity.NormalizedLabel(nil, nil); got != "ns:&pod:" {
		t.Errorf("without labels it is %q", got)
	}
}

// What is joined can be taken apart, and what old versions wrote as well (WK-58).
// Anything else is no label, and no reason to stop.
//
// covers: WK-58
func TestParseLabel(t *testing.T) {
	for text, want := range map[string]string{
		"ns:kubernetes.io/metadata.name=shop&pod:app=cart,tier=web": "map[kubernetes.io/metadata.name:shop] map[app:cart tier:web]",
		"ns:&pod:":                 "map[] map[]",
		"ns:<none>&pod:<none>":     "map[] map[]",
		"ns:a=b&pod:<none>":        "map[a:b] map[]",
		"ns:a=&pod:b=c=d":          "map[a:] map[b:c=d]",
		"":                         "no",
		"ns:a=b":                   "no",
		"pod:a=b":                  "no",
		"ns:a&pod:b=c":             "no",
		"ns:a=b&pod:=c":            "no",
		"ns:a=b,&pod:":             "no",
		"ns:<none>,a=b&pod:<none>": "no",
	} {
		got := "no"
		if namespace, pod, ok := identity.ParseLabel(text); ok {
			got = fmt.Sprint(namespace, " ", pod)
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.MapOf(rapid.StringMatching(`[a-z./]{1,8}`), rapid.StringMatching(`[a-z0-9.-]{0,8}`))
		namespace, pod := labels.Draw(t, "namespace"), labels.Draw(t, "pod")
		gotNamespace, gotPod, ok := identity.ParseLabel(identity.NormalizedLabel(namespace, pod))
		if !ok || !maps.Equal(gotNamespace, namespace) || !maps.Equal(gotPod, pod) {
			t.Fatalf("%v and %v come back as %v, %v (%t)", namespace, pod, gotNamespace, gotPod, ok)
		}
	})
}

func TestPolicyNames(t *testing.T) {
	for name, want := range map[types.NamespacedName]string{
		{Name: "web"}:                    "web-antreaclusternetworkpolicy",
		{Namespace: "shop", Name: "web"}: "shop-web-antreaclusternetworkpolicy",
	} {
		if got := identity.PolicyImportName(name); got != want || !identity.IsPolicyImportName(got) { // as upstream names it
			t.Errorf("the import of %s is %q, want %q", name, got, want)
		}
	}
	if got := identity.ImportedPolicyName("web"); got != "antrea-mc-web" || !identity.IsImportedPolicyName(got) || identity.IsImportedPolicyName("web") {
		t.Errorf("the policy is %q", got)
	}
}
