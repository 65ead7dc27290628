package spelling_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/plan/spelling"
)

func TestNearest(t *testing.T) {
	keys := []string{"clusterID", "endpointIPType", "podCIDRs", "serviceCIDR"}
	for word, want := range map[string]string{
		"endpointIpType": "endpointIPType", // letter case is no difference
		"podCIDR":        "podCIDRs",
		"servicecidrs":   "serviceCIDR",
		"clusterId":      "clusterID",
		"webhook":        "", // nothing near
	} {
		if got := spelling.Nearest(word, keys); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := spelling.Nearest("x", nil); got != "" {
		t.Errorf("Nearest without candidates = %q", got)
	}
}
