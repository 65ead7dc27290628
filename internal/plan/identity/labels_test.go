package identity_test

import (
	"testing"

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
