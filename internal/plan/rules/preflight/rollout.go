package preflight

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// wireSelector is that of every controller since v1.6, and of ours.
var wireSelector = map[string]string{"app": "antrea", "component": "antrea-mc-controller"}

func deployment(c Controller) []rule.Object {
	return []rule.Object{{Kind: "Deployment", Namespace: c.Namespace, Name: c.Name}}
}

// eachController calls look for every controller of the set.
func (e Evidence) eachController(r *report, look func(source, Controller)) {
	e.everywhere(func(from source, c Cluster) {
		controllers, _ := need(r, from, "the controllers", c.Controllers)
		for _, controller := range controllers {
			look(from, controller)
		}
	})
}

var selectors = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-16", Severity: rule.Refuse, Title: "The Deployment can be changed in place",
		Why:    "The selector of a Deployment cannot change. Installations of v1.5.0 have another one, and applying the new manifest over it fails.",
		Remedy: "delete the Deployment, then apply the new manifest",
		Source: "upgrade of Antrea Multi-cluster to v2.7",
	},
	look: func(e Evidence, r *report) {
		e.eachController(r, func(from source, c Controller) {
			if !maps.Equal(c.Selector, wireSelector) {
				r.block(rule.Finding{
					Cluster: from.cluster, Objects: deployment(c),
					Message: fmt.Sprintf("the %s controller of %s has another selector than the new manifest", c.Role, from),
				})
			}
		})
	},
}

var versionOrder = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-17", Severity: rule.Refuse, Title: "Versions follow the order of an upgrade",
		Why:    "The leader goes first, then all members to the same version, the command line last. Other orders were never tried, and nothing on the wire notices them.",
		Remedy: "upgrade the leader first, then the members, then the command line",
		Source: "upgrade of Antrea Multi-cluster to v2.7, UPG-2, UPG-7",
	},
	look: func(e Evidence, r *report) {
		leader := e.newestLeader(r)
		members := map[string]bool{}
		e.eachController(r, func(from source, c Controller) {
			v, ok := parse(c.Version)
			switch {
			case !ok:
				// Versions of ours are compared with nothing, so this one is no obstacle.
				weight := r.rule.Severity
				if !c.Upstream {
					weight = rule.Warn
				}
				r.add(rule.Finding{Severity: weight, Unknown: true, Cluster: from.cluster, Objects: deployment(c),
					Message: fmt.Sprintf("unknown: the version of the %s controller of %s cannot be told from its image", c.Role, from), Remedy: "give the image a tag that is a version"})
			case c.Role == "member" && c.Upstream && leader != nil && minor(leader).LessThan(minor(v)):
				r.block(rule.Finding{Cluster: from.cluster, Objects: deployment(c), Message: fmt.Sprintf("%s runs v%s, which is newer than the leader's v%s", from, v, leader)})
			}
			if ok && c.Role == "member" {
				members[fmt.Sprintf("%v %s", c.Upstream, v)] = true
			}
		})
		if len(members) > 1 {
			r.warn(rule.Finding{Message: "the members run different versions"})
		}
		e.commandLineOrder(r)
		e.everywhere(func(from source, c Cluster) { e.kubernetesVersion(r, from, c) })
	},
}

// IsVersion tells whether a text can be compared as the version of a program.
func IsVersion(text string) bool {
	_, ok := parse(text)
	return ok
}

func parse(text string) (*version.Version, bool) {
	v, err := version.ParseGeneric(text)
	return v, err == nil
}

// minor cuts a version after its second number: patch releases mix freely.
func minor(v *version.Version) *version.Version { return version.MajorMinor(v.Major(), v.Minor()) }

// newestLeader is the version of an upstream leader; nil when it is ours, or is
// not known. Versions of different programs cannot be compared.
func (e Evidence) newestLeader(r *report) *version.Version {
	controllers, _ := need(r, e.Leader.source(), "the controllers", e.Leader.Controllers)
	for _, c := range of("leader", controllers) {
		if v, ok := parse(c.Version); ok && c.Upstream {
			return v
		}
	}
	return nil
}

func (e Evidence) commandLineOrder(r *report) {
	text, ok := need(r, source{}, "the version of antctl", e.CLI)
	cli, isVersion := parse(text)
	if !ok || !isVersion {
		return
	}
	e.eachController(r, func(from source, c Controller) {
		if v, ok := parse(c.Version); ok && c.Upstream && minor(v).LessThan(minor(cli)) {
			r.warn(rule.Finding{Cluster: from.cluster, Objects: deployment(c), Message: fmt.Sprintf("antctl v%s is newer than the %s controller of %s, v%s", cli, c.Role, from, v)})
		}
	})
}

// kubernetesVersion: 1.23 is the oldest that is supported; 1.33 tells its Service
// range in another way, which upstream understands since v2.5.
func (e Evidence) kubernetesVersion(r *report, from source, c Cluster) {
	text, ok := need(r, from, "the version of Kubernetes", c.Kubernetes)
	v, isVersion := parse(text)
	if !ok || !isVersion {
		return
	}
	if !v.AtLeast(version.MajorMinor(1, 23)) {
		r.block(rule.Finding{Cluster: from.cluster, Message: fmt.Sprintf("%s runs Kubernetes v%s, and v1.23 is the oldest that is supported", from, v), Remedy: "upgrade Kubernetes first"})
	}
	if from.cluster == "" || !v.AtLeast(version.MajorMinor(1, 33)) {
		return
	}
	controllers, _ := need(r, from, "the controllers", c.Controllers)
	old := slices.ContainsFunc(of("member", controllers), func(c Controller) bool {
		v, ok := parse(c.Version)
		return c.Upstream && ok && v.LessThan(version.MajorMinor(2, 5))
	})
	if old && e.member(from).discoversServiceCIDR(r, from) {
		r.block(rule.Finding{
			Cluster: from.cluster, Message: fmt.Sprintf("the controller of %s cannot find the Service range of Kubernetes v%s", from, v),
			Remedy: "set serviceCIDR in the configuration of the member controller",
		})
	}
}

func (e Evidence) member(from source) Member {
	i := slices.IndexFunc(e.Members, func(m Member) bool { return m.ID == from.cluster })
	return e.Members[i]
}

func (m Member) discoversServiceCIDR(r *report, from source) bool {
	settings, ok := need(r, from, "the settings", m.Settings)
	return ok && settings.ServiceCIDR == ""
}

var rolloutRoom = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-23", Severity: rule.Warn, Title: "There is room to roll the controllers out",
		Why:    "On the network of the host two Pods cannot share a port. A roll-out that starts the new Pod first then waits for a Node that does not exist.",
		Remedy: "use the strategy Recreate, other ports, or no host network",
		Source: "upgrade of Antrea Multi-cluster to v2.7, WK-27",
	},
	look: func(e Evidence, r *report) {
		e.everywhere(func(from source, c Cluster) {
			controllers, okC := need(r, from, "the controllers", c.Controllers)
			nodes, okN := need(r, from, "the Nodes", c.Nodes)
			if !okC || !okN {
				return
			}
			for i, controller := range controllers {
				if !controller.HostNetwork {
					continue
				}
				if controller.Surge && nodes <= controller.Replicas {
					r.warn(rule.Finding{
						Cluster: from.cluster, Objects: deployment(controller),
						Message: fmt.Sprintf("no Node of %s is free for the new Pod of the %s controller", from, controller.Role),
					})
				}
				for _, other := range controllers[i+1:] {
					if other.HostNetwork && sharesPort(controller.Ports, other.Ports) {
						r.warn(rule.Finding{
							Cluster: from.cluster, Objects: append(deployment(controller), deployment(other)...),
							Message: fmt.Sprintf("the controllers in %s use the same ports of the host", from),
						})
					}
				}
			}
		})
	},
}

func sharesPort(a, b []int32) bool {
	return slices.ContainsFunc(a, func(port int32) bool { return slices.Contains(b, port) })
}

// certificateDue leaves 90 of the 365 days that upstream's certificate is valid.
const certificateDue = 275 * 24 * time.Hour

var certificates = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-24", Severity: rule.Warn, Title: "Webhook certificates are far from their end",
		Why:    "An upstream controller makes its certificate when it starts, for one year, and never again. When it ends, every write to the common area is refused.",
		Remedy: "restart the controller",
		Source: "upgrade of Antrea Multi-cluster to v2.7, WK-26",
	},
	look: func(e Evidence, r *report) {
		now, ok := need(r, e.Leader.source(), "the time", e.Leader.Now)
		e.eachController(r, func(from source, c Controller) {
			if !ok || !c.Upstream || len(c.Started) == 0 || now.Sub(earliest(c.Started)) <= certificateDue {
				return
			}
			r.warn(rule.Finding{
				Cluster: from.cluster, Objects: deployment(c), Message: fmt.Sprintf("the %s controller of %s has run for more than 275 days", c.Role, from),
				Evidence: []string{"it started at " + earliest(c.Started).UTC().Format(clock)},
			})
		})
	},
}
