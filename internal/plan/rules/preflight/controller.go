package preflight

import (
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// Controller is the Deployment of a multi-cluster controller.
type Controller struct {
	Role      string // "leader" or "member"
	Namespace string
	Name      string
	// Upstream tells the controller of Antrea from one of ours.
	Upstream bool
	Version  string // "v2.7.0"; empty when its image does not say
	Selector map[string]string
	// HostNetwork, Ports and the strategy decide whether a roll-out can proceed.
	HostNetwork bool
	Ports       []int32
	Replicas    int
	// Surge: the roll-out starts a new Pod before it stops the old one.
	Surge bool
	// Started is when each of its processes was.
	Started []time.Time
}

// strict tells whether a leader binds identities: upstream's since v2.7, ours
// always. Nobody knows of a version that cannot be read.
func (c Controller) strict() bool { return !c.Upstream || c.atLeast("2.7") }

func (c Controller) atLeast(wanted string) bool {
	have, err := version.ParseGeneric(c.Version)
	return err == nil && have.AtLeast(version.MustParseGeneric(wanted))
}

// of picks the controllers of a role.
func of(role string, all []Controller) []Controller {
	var those []Controller
	for _, c := range all {
		if c.Role == role {
			those = append(those, c)
		}
	}
	return those
}
