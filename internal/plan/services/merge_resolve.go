package services

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// outcome is the merged Service by the rules of KEP-1645: the oldest export
// decides, ports are united from the oldest to the youngest.
type outcome struct {
	spec  mcsv1beta1.ServiceImportSpec
	facts v1alpha1.MergeFacts
	// accepted clusters, sorted by ID; leftOut share no IP family with the
	// older ones.
	accepted, leftOut []string
	conflict          conflict
}

// resolve merges contributions, oldest first. Without any the outcome is empty.
func resolve(contributions []contribution) outcome {
	if len(contributions) == 0 {
		return outcome{}
	}
	winner := contributions[0]
	families, accepted, leftOut := intersectFamilies(contributions)
	out := outcome{spec: specOf(winner, families), leftOut: leftOut}
	out.facts.Labels, out.facts.Annotations = winner.facts.Labels, winner.facts.Annotations
	for _, c := range accepted {
		var refused []string
		out.spec.Ports, refused = unionPorts(out.spec.Ports, c.ports)
		out.refuse(c.cluster, refused)
		out.accepted = append(out.accepted, c.cluster)
	}
	slices.Sort(out.accepted)
	out.conflict = findConflict(contributions, out)
	return out
}

// refuse remembers that no traffic for these ports may go to a cluster.
func (out *outcome) refuse(cluster string, ports []string) {
	if len(ports) == 0 {
		return
	}
	if out.facts.RefusedPorts == nil {
		out.facts.RefusedPorts = map[string][]string{}
	}
	slices.Sort(ports)
	out.facts.RefusedPorts[cluster] = ports
}

// specOf takes every property but ports and families from the winner. Defaults
// are written out, because an importer compares them with those of a Service.
func specOf(winner contribution, families []corev1.IPFamily) mcsv1beta1.ServiceImportSpec {
	spec := mcsv1beta1.ServiceImportSpec{
		Type:                  winner.facts.Type,
		Ports:                 []mcsv1beta1.ServicePort{}, // required, also when empty
		IPFamilies:            families,
		InternalTrafficPolicy: winner.facts.InternalTrafficPolicy,
		TrafficDistribution:   winner.facts.TrafficDistribution,
	}
	if spec.Type != mcsv1beta1.Headless { // affinity belongs to an address
		spec.SessionAffinity = winner.facts.SessionAffinity
		spec.SessionAffinityConfig = winner.facts.SessionAffinityConfig
	}
	return spec
}

// intersectFamilies narrows the winner's families to those of each younger
// export in turn, so that every family reaches all backends. An export that
// would leave none is left out instead.
func intersectFamilies(contributions []contribution) (families []corev1.IPFamily, accepted []contribution, leftOut []string) {
	families = contributions[0].facts.IPFamilies
	for _, c := range contributions {
		common := intersect(families, c.facts.IPFamilies)
		if len(common) == 0 {
			leftOut = append(leftOut, c.cluster)
			continue
		}
		families, accepted = common, append(accepted, c)
	}
	slices.Sort(leftOut)
	return families, accepted, leftOut
}

// intersect keeps the order of a.
func intersect(a, b []corev1.IPFamily) []corev1.IPFamily {
	return slices.DeleteFunc(slices.Clone(a), func(f corev1.IPFamily) bool { return !slices.Contains(b, f) })
}
