package overview

import (
	"fmt"
	"strings"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// Network is what a member tells others of its network.
type Network struct {
	ServiceCIDR string   `json:"serviceCIDR"`
	PodCIDRs    []string `json:"podCIDRs,omitempty"`
	GatewayIP   string   `json:"gatewayIP"`
	// Encrypted tells that the member has published a WireGuard key.
	Encrypted bool `json:"encrypted"`
}

// network of a cluster, from the common area; nil when it has no gateway, or when
// the leader was not read.
func (p *page) network(cluster string) *Network {
	if p.lead == nil {
		return nil
	}
	for i := range p.lead.cluster.ResourceExports {
		export := &p.lead.cluster.ResourceExports[i]
		info := export.Spec.ClusterInfo
		if export.Namespace != p.area || export.Spec.ClusterID != cluster || export.Spec.Kind != v1alpha1.KindClusterInfo || info == nil {
			continue
		}
		network := &Network{ServiceCIDR: info.ServiceCIDR, PodCIDRs: info.PodCIDRs, Encrypted: info.WireGuard != nil}
		if len(info.GatewayInfos) > 0 {
			network.GatewayIP = info.GatewayInfos[0].GatewayIP
		}
		return network
	}
	return nil
}

// checkNetworks tells of addresses that two clusters claim. The leader tells of
// all of them; without it, the members of what they see.
func (p *page) checkNetworks() {
	sources := p.memberships
	if p.lead != nil {
		sources = []membership{*p.lead}
	}
	told := map[string]bool{}
	for _, m := range sources {
		for _, cluster := range m.set.Status.ClusterStatuses {
			for _, c := range cluster.Conditions {
				if c.Type == v1alpha1.ClusterNetworkConflict && c.Status == "True" && !told[cluster.ClusterID] {
					told[cluster.ClusterID] = true
					p.problem("WK-9", fmt.Sprintf("addresses of cluster %q are claimed twice", cluster.ClusterID), c.Message,
						"see serviceCIDR and podCIDRs in the configuration of the member controllers of both")
				}
			}
		}
	}
}

// withNetwork are the members whose network is known.
func withNetwork(members []Member) []Member {
	var known []Member
	for _, m := range members {
		if m.Network != nil {
			known = append(known, m)
		}
	}
	return known
}

func (m Member) networkCells() []string {
	encrypted := "no"
	if m.Network.Encrypted {
		encrypted = "WireGuard"
	}
	return []string{m.ClusterID, m.Network.ServiceCIDR, strings.Join(m.Network.PodCIDRs, ","), m.Network.GatewayIP, encrypted}
}
