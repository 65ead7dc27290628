package lab

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func allocate(t *testing.T, overlap bool, names ...string) []ClusterSpec {
	t.Helper()
	held, err := claimFor(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(held.release)
	clusters, err := allocateClusters(held.octet, names, overlap)
	if err != nil {
		t.Fatal(err)
	}
	return clusters
}

func manyNames() []string {
	return strings.Split(strings.Repeat("c ", maxClusters), " ")[:maxClusters]
}

func TestRangesOfClustersAreApart(t *testing.T) {
	names := manyNames()
	for i := range names {
		names[i] += string(rune('a' + i))
	}
	clusters := allocate(t, false, names...)
	var ranges []netip.Prefix
	for _, c := range clusters {
		// What a Pod's processes listen on, beside what the servers do.
		pod := c.PodCIDR.Addr().As4()
		pod[0] = 127
		ranges = append(ranges, c.PodCIDR, c.ServiceCIDR, netip.PrefixFrom(netip.AddrFrom4(pod), c.PodCIDR.Bits()), netip.PrefixFrom(c.Address, 32))
	}
	for i, a := range ranges {
		for _, b := range ranges[:i] {
			if a.Overlaps(b) {
				t.Errorf("%s overlaps %s", a, b)
			}
		}
	}
}

func TestServiceRangesOverlapOnRequest(t *testing.T) {
	clusters := allocate(t, true, "east", "west")
	if clusters[0].ServiceCIDR != clusters[1].ServiceCIDR {
		t.Errorf("%s and %s differ", clusters[0].ServiceCIDR, clusters[1].ServiceCIDR)
	}
	if clusters[0].PodCIDR == clusters[1].PodCIDR {
		t.Errorf("both have Pods in %s", clusters[0].PodCIDR)
	}
}

func TestPortsOfAClusterDiffer(t *testing.T) {
	for _, c := range allocate(t, false, "leader", "east", "west") {
		ports := []uint16{c.Ports.Etcd, c.Ports.EtcdPeer, c.Ports.APIServer, c.Ports.ControllerManager}
		for _, relay := range c.Relays {
			ports = append(ports, relay.APIServer, relay.Etcd)
		}
		slices.Sort(ports)
		if len(ports) != 8 || ports[0] == 0 || len(slices.Compact(ports)) != 8 {
			t.Errorf("cluster %s has the ports %v", c.Name, ports)
		}
	}
}

func TestNoTwoLabsShareTheirAddresses(t *testing.T) {
	first, err := claimFor("/the/same/hash")
	if err != nil {
		t.Fatal(err)
	}
	defer first.release()
	second, err := claimFor("/the/same/hash")
	if err != nil {
		t.Fatal(err)
	}
	defer second.release()
	if first.octet == second.octet {
		t.Errorf("both have 127.%d.0.0/16", first.octet)
	}
	if _, err := claimOctet(first.octet); !errors.Is(err, errTaken) {
		t.Errorf("got %v, want taken", err)
	}
}

func TestOctetsKeepClearOfServiceAddresses(t *testing.T) {
	all := octets("/any")
	for i := range maxClusters + 1 {
		if slices.Contains(all, byte(firstServiceOctet+i)) {
			t.Errorf("octet %d could be given to Pods", firstServiceOctet+i)
		}
	}
	if slices.Contains(all, 0) || len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all) {
		t.Errorf("octets %v", all)
	}
}
