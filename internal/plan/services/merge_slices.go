package services

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// keptSlices stand in for the slices of upstream members, so that an own
// importer has one source of endpoints.
//
// A member that changes sides keeps its slices without a gap: the one that
// begins to speak takes over what it finds under its labels. The leader adopts
// what an own peer left when its successor is upstream's, and leaves what it
// kept to a peer that still exports.
func (m merger) keptSlices() []Change[discoveryv1.EndpointSlice] {
	wanted := map[string][]Group{}
	for _, re := range m.usableEndpoints() {
		if !m.Peers[re.Spec.ClusterID] {
			wanted[re.Spec.ClusterID] = subsetGroups(re.Spec.Endpoints.Subsets)
		}
	}
	var writes, deletes []Change[discoveryv1.EndpointSlice]
	for _, cluster := range m.keptClusters(wanted) {
		for _, change := range Pack(m.Slices, wanted[cluster], m.keeperLayout(cluster, len(wanted[cluster]) > 0)) {
			if change.Deletes() {
				deletes = append(deletes, change)
			} else {
				writes = append(writes, change)
			}
		}
	}
	return append(writes, deletes...)
}

// keptClusters have endpoints to keep, or slices kept for them before. Those
// of a peer that still exports are the peer's to take over.
func (m merger) keptClusters(wanted map[string][]Group) []string {
	clusters := map[string]bool{}
	for cluster := range wanted {
		clusters[cluster] = true
	}
	for i := range m.Slices {
		cluster := m.Slices[i].Labels[mcsv1beta1.LabelSourceCluster]
		if keptByLeader(&m.Slices[i]) && !(m.Peers[cluster] && m.exports.from(cluster)) {
			clusters[cluster] = true
		}
	}
	return slices.Sorted(maps.Keys(clusters))
}

// from tells whether a cluster exports the Service.
func (x exports) from(cluster string) bool {
	return slices.ContainsFunc(x.services, func(re *v1alpha1.ResourceExport) bool { return re.Spec.ClusterID == cluster })
}

func keptByLeader(s *discoveryv1.EndpointSlice) bool { return s.Labels[LabelKeeper] == KeeperLeader }

// keeperLayout marks what the leader keeps; only marked slices are ever
// withdrawn without a successor.
func (m merger) keeperLayout(cluster string, adopt bool) Layout {
	l := areaLayout(m.Area, cluster, m.Tuple)
	ours, dress := l.Ours, l.Dress
	l.Ours = func(s *discoveryv1.EndpointSlice) bool { return ours(s) && (adopt || keptByLeader(s)) }
	l.Dress = func(s *discoveryv1.EndpointSlice) {
		dress(s)
		s.Labels[LabelKeeper] = KeeperLeader
	}
	return l
}

// subsetGroups are the ready addresses of wire subsets. Addresses that are none
// are left out here: they would keep the whole slice from being written.
func subsetGroups(subsets []corev1.EndpointSubset) []Group {
	var groups []Group
	for _, s := range subsets {
		ports := make([]discoveryv1.EndpointPort, 0, len(s.Ports))
		for _, p := range s.Ports {
			ports = append(ports, discoveryv1.EndpointPort{Name: new(p.Name), Port: new(p.Port), Protocol: new(protocol(p.Protocol)), AppProtocol: p.AppProtocol})
		}
		for _, a := range s.Addresses {
			if t, ip, ok := addressType(a.IP); ok {
				endpoint := discoveryv1.Endpoint{Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}
				groups = append(groups, Group{AddressType: t, Ports: ports, Endpoints: []discoveryv1.Endpoint{endpoint}})
			}
		}
	}
	return groups
}
