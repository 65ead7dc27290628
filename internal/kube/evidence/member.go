package evidence

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/fabric"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// antrea is the group of Antrea's own kinds.
var antrea = schema.GroupVersion{Group: "crd.antrea.io", Version: "v1beta1"}

func readMember(ctx context.Context, c Cluster, p preflight.Part, leader Cluster, limit time.Duration) memberRead {
	m := memberRead{Member: preflight.Member{ID: p.ID}}
	r, done := within(ctx, c, limit)
	r.cluster(p, &m.Cluster)
	r.do(func() { m.Kubernetes = greet(r.ctx, c.Config).kubernetes })
	r.do(func() { m.Credential = known(r.credential(p, leader.Config, leader.Client)) })
	r.do(func() {
		m.Gateways = known(orNone(list[v1alpha1.Gateway](r.ctx, r.client, &v1alpha1.GatewayList{}, client.InNamespace(p.Namespace))))
	})
	r.do(func() { m.Tiers = known(r.tiers()) })
	r.do(func() {
		configured, err := r.configuration(p.Namespace)
		var settings preflight.Settings
		if err == nil {
			settings, err = r.settings(configured)
		}
		m.Settings = known(settings, err)
		nodes, unread := list[corev1.Node](r.ctx, r.client, &corev1.NodeList{})
		m.Nodes = known(schedulable(nodes), unread)
		m.GatewayNodes = known(gatewayNodes(nodes, fabric.Precedence(configured.GatewayIPPrecedence)), cmp.Or(unread, err))
		m.Labels = known(r.labels(configured.EnableStretchedNetworkPolicy, err))
	})
	r.do(func() { r.services(&m) })
	done()
	return m
}

// tiers that a policy can be in; a cluster without Antrea has none.
func (r *reading) tiers() ([]string, error) {
	found, err := orNone(listAny(r.ctx, r.client, antrea.WithKind("Tier")))
	var all []string
	for i := range found {
		all = append(all, found[i].GetName())
	}
	return all, err
}

// settings joins what the controller was told with what Antrea's agents were.
func (r *reading) settings(told v1alpha1.MultiClusterConfig) (preflight.Settings, error) {
	s := preflight.Settings{
		EndpointIPType: cmp.Or(told.EndpointIPType, v1alpha1.EndpointIPTypeClusterIP),
		Stretched:      told.EnableStretchedNetworkPolicy, ServiceCIDR: told.ServiceCIDR, Encryption: "none",
	}
	at := types.NamespacedName{Namespace: "kube-system", Name: "antrea-config"}
	text, err := r.configMap(at, "antrea-agent.conf")
	if err != nil {
		return s, err
	}
	var agent struct {
		TunnelType   string `json:"tunnelType"`
		Multicluster struct {
			EnableGateway         bool   `json:"enableGateway"`
			TrafficEncryptionMode string `json:"trafficEncryptionMode"`
		} `json:"multicluster"`
	}
	if err := yaml.Unmarshal([]byte(text), &agent); err != nil {
		return s, fmt.Errorf("ConfigMap %s cannot be understood: %w", at, err)
	}
	if agent.Multicluster.EnableGateway {
		s.Overlay = cmp.Or(agent.TunnelType, "geneve")
		s.Encryption = encryption(agent.Multicluster.TrafficEncryptionMode)
	}
	return s, nil
}

// encryption as agents read it, who do not look at the case.
func encryption(mode string) string {
	if strings.EqualFold(mode, "wireGuard") {
		return "wireGuard"
	}
	return cmp.Or(mode, "none")
}

func gatewayNodes(nodes []corev1.Node, precedence fabric.Precedence) []preflight.GatewayNode {
	var marked []preflight.GatewayNode
	for i := range nodes {
		if !fabric.Marked(&nodes[i]) {
			continue
		}
		g := preflight.GatewayNode{Name: nodes[i].Name, Ready: ready(&nodes[i])}
		if gateway, internal, problem := fabric.Addresses(&nodes[i], precedence); problem == "" {
			g.GatewayIP, g.InternalIP = gateway.String(), internal.String()
		}
		marked = append(marked, g)
	}
	return marked
}

// labels are those of running Pods, each set once. Where no policy reaches across
// clusters nobody needs them, and Pods are many.
func (r *reading) labels(stretched bool, unknown error) ([]string, error) {
	if unknown != nil || !stretched {
		return nil, unknown
	}
	pods, err := names(r.ctx, r.client, corev1.SchemeGroupVersion.WithKind("Pod"), client.MatchingFields{"status.phase": string(corev1.PodRunning)})
	if err != nil {
		return nil, err
	}
	namespaces, err := names(r.ctx, r.client, corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err != nil {
		return nil, err
	}
	of := map[string]map[string]string{}
	for i := range namespaces {
		of[namespaces[i].Name] = namespaces[i].Labels
	}
	seen := map[string]bool{}
	var all []string
	for i := range pods {
		if l := identity.NormalizedLabel(of[pods[i].Namespace], pods[i].Labels); !seen[l] {
			seen[l] = true
			all = append(all, l)
		}
	}
	return all, nil
}

// memberRead is a member and what it exports, before it is known in which form.
type memberRead struct {
	preflight.Member
	exported rule.Read[[]exported]
}
