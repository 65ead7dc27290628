package mc

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// checkClusterID refuses an ID that cannot stand where the ID has to stand.
func checkClusterID(what, id string) error {
	if err := identity.ValidateCluster(id); err != nil {
		return &refusal.Refusal{What: what, Why: err.Error(), Rule: "UPG-CHK-18"}
	}
	return nil
}

// checkClusterSetID refuses a ClusterSet name that cannot be an object name and
// a label value at once; imported objects carry it as a label.
func checkClusterSetID(what, id string) error {
	problems := validation.IsDNS1123Subdomain(id)
	problems = append(problems, validation.IsValidLabelValue(id)...)
	if len(problems) == 0 {
		return nil
	}
	return &refusal.Refusal{
		What: what,
		Why:  fmt.Sprintf("%q is no ClusterSet ID: %s", id, problems[0]),
		Next: "choose at most 63 lower-case letters, digits, dots and dashes",
	}
}

// dashPair tells whether one ID is the other followed by a dash and more. Then
// an export of the one can have the name of an export of the other.
func dashPair(a, b string) bool {
	return strings.HasPrefix(a, b+"-") || strings.HasPrefix(b, a+"-")
}
