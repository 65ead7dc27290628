package preflight

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

var lostChanges = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-26", Severity: rule.Warn, Title: "The common area has what the members export",
		Why:    "An upstream member does not notice what was lost in the common area, nor what changed while its controller was down, and every upgrade restarts it.",
		Remedy: "change the object, its labels for example, so that the member controller looks at it again; upgrade the controller so that it looks by itself",
		Source: "upgrade of Antrea Multi-cluster to v2.7, WK-1, WK-63",
	},
	look: func(e Evidence, r *report) {
		published, ok := e.published(r)
		for _, m := range e.Members {
			if exported, okX := need(r, m.source(), "the ServiceExports", m.Exported); ok && okX {
				lostExports(r, e.Leader, m, exported, published)
			}
			lostGateway(r, m)
			if ok {
				lostLabels(r, m, published)
			}
		}
	},
}

// published is what the common area holds.
type published struct {
	exports   map[string]v1alpha1.ResourceExport // by name
	peers     map[string]bool                    // clusters that exchange endpoints by slices
	addresses map[string][]string                // cluster/namespace/name → of slices
}

func (e Evidence) published(r *report) (published, bool) {
	p := published{map[string]v1alpha1.ResourceExport{}, map[string]bool{}, map[string][]string{}}
	exports, okE := need(r, e.Leader.source(), "the exports", e.Leader.Exports)
	slicesOf, okS := need(r, e.Leader.source(), "the slices", e.Leader.Slices)
	announces, okA := need(r, e.Leader.source(), "the announces", e.Leader.Announces)
	for _, x := range exports {
		p.exports[x.Name] = x
	}
	for _, a := range announces {
		p.peers[a.ClusterID] = PublishesSlices(&a)
	}
	for _, s := range slicesOf {
		service := types.NamespacedName{Namespace: s.Labels[v1alpha1.LabelServiceNamespace], Name: s.Labels[mcsv1beta1.LabelServiceName]}
		key := s.Labels[mcsv1beta1.LabelSourceCluster] + "/" + service.String()
		for _, endpoint := range s.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				p.addresses[key] = append(p.addresses[key], endpoint.Addresses...)
			}
		}
	}
	return p, okE && okS && okA
}

// PublishesSlices tells in which form a member publishes its endpoints: in slices
// when it is a peer of ours under a leader that takes them, else as the wire does.
func PublishesSlices(a *v1alpha1.MemberClusterAnnounce) bool {
	return a.Annotations[v1alpha1.AnnotationPeer] != "" && clusterset.ReadAnswer(a).Exchange != clusterset.ExchangeWire
}

func lostExports(r *report, l Leader, m Member, exported []Exported, p published) {
	for _, x := range exported {
		if !x.Valid {
			continue
		}
		name := identity.ServiceExportName(m.ID, x.NamespacedName)
		f := rule.Finding{
			Cluster: m.ID, Objects: append([]rule.Object{{Kind: "ServiceExport", Namespace: x.Namespace, Name: x.Name}}, l.objects("ResourceExport", []string{name})...),
		}
		export, there := p.exports[name]
		switch {
		case !there || !export.DeletionTimestamp.IsZero():
			f.Message = fmt.Sprintf("ServiceExport %s of %s is valid, and is missing at the leader", x.NamespacedName, m.source())
		case export.Spec.Service == nil || !samePorts(x.Ports, export.Spec.Service.ServiceSpec.Ports):
			f.Message = fmt.Sprintf("the leader has other ports for Service %s of %s", x.NamespacedName, m.source())
		case !sameSet(x.Addresses, p.addressesOf(m.ID, x.NamespacedName)):
			f.Message = fmt.Sprintf("the leader has other endpoints for Service %s of %s", x.NamespacedName, m.source())
			f.Evidence = []string{fmt.Sprintf("%d addresses in the member, %d at the leader", len(x.Addresses), len(p.addressesOf(m.ID, x.NamespacedName)))}
		default:
			continue
		}
		r.fix(f)
	}
}

// addressesOf a Service in the common area: in slices of an own peer, in the
// wire's Endpoints of others.
func (p published) addressesOf(cluster string, service types.NamespacedName) []string {
	if p.peers[cluster] {
		return p.addresses[cluster+"/"+service.String()]
	}
	var addresses []string
	if x, ok := p.exports[identity.EndpointsExportName(cluster, service)]; ok && x.Spec.Endpoints != nil {
		for _, subset := range x.Spec.Endpoints.Subsets {
			for _, a := range subset.Addresses {
				addresses = append(addresses, a.IP)
			}
		}
	}
	return addresses
}

// samePorts compares what importers see of a port.
func samePorts(a, b []corev1.ServicePort) bool {
	describe := func(ports []corev1.ServicePort) []string {
		var all []string
		for _, p := range ports {
			protocol := p.Protocol
			if protocol == "" {
				protocol = corev1.ProtocolTCP
			}
			all = append(all, fmt.Sprintf("%s %s %d", p.Name, protocol, p.Port))
		}
		return all
	}
	return sameSet(describe(a), describe(b))
}

func sameSet(a, b []string) bool {
	set := func(list []string) map[string]bool {
		all := map[string]bool{}
		for _, s := range list {
			all[s] = true
		}
		return all
	}
	return maps.Equal(set(a), set(b))
}

func lostGateway(r *report, m Member) {
	nodes, okN := need(r, m.source(), "the gateway Nodes", m.GatewayNodes)
	gateways, okG := need(r, m.source(), "the Gateways", m.Gateways)
	if !okN || !okG {
		return
	}
	eligible := slices.ContainsFunc(nodes, func(n GatewayNode) bool { return n.Ready && n.GatewayIP != "" })
	if eligible && len(gateways) == 0 {
		r.fix(rule.Finding{Cluster: m.ID, Message: fmt.Sprintf("%s has a Node that can be the gateway, and no Gateway", m.source())})
	}
	for _, g := range gateways {
		f := rule.Finding{Cluster: m.ID, Objects: []rule.Object{{Kind: "Gateway", Namespace: g.Namespace, Name: g.Name}}}
		i := slices.IndexFunc(nodes, func(n GatewayNode) bool { return n.Name == g.Name })
		switch {
		case i < 0:
			f.Message = fmt.Sprintf("Gateway %q of %s has no Node with the gateway annotation", g.Name, m.source())
		case !nodes[i].Ready:
			f.Message = fmt.Sprintf("the Node of Gateway %q of %s is not ready", g.Name, m.source())
		case nodes[i].GatewayIP != g.GatewayIP || nodes[i].InternalIP != g.InternalIP:
			f.Message = fmt.Sprintf("Gateway %q of %s has other addresses than its Node", g.Name, m.source())
			f.Evidence = []string{
				fmt.Sprintf("Gateway: %s, %s", g.GatewayIP, g.InternalIP), fmt.Sprintf("Node: %s, %s", nodes[i].GatewayIP, nodes[i].InternalIP),
			}
		default:
			continue
		}
		r.fix(f)
	}
}

// lostLabels compares label sets where policies reach across clusters; elsewhere
// nobody exports them.
func lostLabels(r *report, m Member, p published) {
	settings, okS := need(r, m.source(), "the settings", m.Settings)
	if !okS || !settings.Stretched {
		return
	}
	labels, ok := need(r, m.source(), "the labels of Pods", m.Labels)
	if !ok {
		return
	}
	lost := 0
	for _, l := range labels {
		x, there := p.exports[identity.LabelIdentityExportName(m.ID, l)]
		if !there || x.Spec.LabelIdentity == nil || x.Spec.LabelIdentity.NormalizedLabel != l {
			lost++
		}
	}
	if lost > 0 {
		r.fix(rule.Finding{Cluster: m.ID, Message: fmt.Sprintf("label sets of running Pods of %s are missing at the leader", m.source()), Evidence: []string{fmt.Sprintf("%d of %d", lost, len(labels))}})
	}
}
