package lab

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxClusters is how many blocks of Pod addresses fit behind one octet, see podCIDR.
const maxClusters = 15

// firstServiceOctet begins the ranges of Service addresses: 10.96.0.0/16 for
// the first cluster, as kubeadm has it, 10.97.0.0/16 for the second, …
const firstServiceOctet = 96

// CheckNames reports all problems with the names of clusters together.
func CheckNames(names []string) error {
	var problems []error
	if len(names) == 0 {
		problems = append(problems, errors.New("a lab needs at least one cluster"))
	}
	if len(names) > maxClusters {
		problems = append(problems, fmt.Errorf("%d clusters are more than the %d that fit in one lab", len(names), maxClusters))
	}
	for i, name := range names {
		switch {
		case name == "":
			problems = append(problems, errors.New("the name of a cluster is empty"))
		case slices.Contains(names[:i], name):
			problems = append(problems, fmt.Errorf("cluster name %q is given twice", name))
		case len(validation.IsDNS1123Label(name)) > 0:
			problems = append(problems, fmt.Errorf("cluster name %q is not made of at most 63 of the letters a to z, digits and inner hyphens", name))
		}
	}
	return errors.Join(problems...)
}

// allocateClusters gives every cluster its addresses and ports.
func allocateClusters(octet byte, names []string, overlapServices bool) ([]ClusterSpec, error) {
	clusters := make([]ClusterSpec, 0, len(names))
	for i, name := range names {
		c := ClusterSpec{
			Name:        name,
			Address:     clusterAddress(octet, i),
			PodCIDR:     podCIDR(octet, i),
			ServiceCIDR: serviceCIDR(i),
			Relays:      map[string]RelayPorts{},
		}
		if overlapServices {
			c.ServiceCIDR = serviceCIDR(0)
		}
		others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
		if err := c.allocatePorts(others); err != nil {
			return nil, fmt.Errorf("cannot find free ports for cluster %q: %w", name, err)
		}
		clusters = append(clusters, c)
	}
	return clusters, nil
}

// clusterAddress is 127.octet.<1…15>.1: on an address of its own, a port
// that is free while a component restarts cannot be taken by an outgoing
// connection, because those leave from 127.0.0.1.
func clusterAddress(octet byte, index int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, octet, byte(index + 1), 1})
}

// podCIDR is 10.octet.<16, 32, … 240>.0/20. The processes of Pod 10.a.b.c
// listen on 127.a.b.c, and b >= 16 keeps them apart from clusterAddress.
func podCIDR(octet byte, index int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, octet, byte(16 * (index + 1)), 0}), 20)
}

func serviceCIDR(index int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(firstServiceOctet + index), 0, 0}), 16)
}

// octets lists all octets a lab may have, beginning at one that depends on
// its directory, so that labs seldom ask for the same and keep theirs from one
// day to the next. Left out: 0, where the system's own loopback addresses
// are, and the octets of Service addresses.
func octets(dir string) []byte {
	var all []byte
	for octet := 1; octet < 255; octet++ {
		if octet < firstServiceOctet || octet >= firstServiceOctet+maxClusters+1 {
			all = append(all, byte(octet))
		}
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(dir))
	first := int(hash.Sum32() % uint32(len(all)))
	return append(slices.Clone(all[first:]), all[:first]...)
}

// allocatePorts asks the kernel for all ports of a cluster. The listeners stay
// open until all are known, or the kernel might give one port twice.
func (c *ClusterSpec) allocatePorts(others []string) error {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	var failed error
	next := func() uint16 {
		l, err := net.Listen("tcp", netip.AddrPortFrom(c.Address, 0).String())
		if err != nil {
			failed = errors.Join(failed, err)
			return 0
		}
		held = append(held, l)
		return uint16(l.Addr().(*net.TCPAddr).Port)
	}
	c.Ports = Ports{Etcd: next(), EtcdPeer: next(), APIServer: next(), ControllerManager: next(), Egress: next()}
	for _, other := range others {
		c.Relays[other] = RelayPorts{APIServer: next(), Etcd: next()}
	}
	return failed
}
