package evidence

import (
	"context"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
)

func readLeader(ctx context.Context, c Cluster, p preflight.Part, limit time.Duration) preflight.Leader {
	l := preflight.Leader{Namespace: p.Namespace}
	r, done := within(ctx, c, limit)
	in := client.InNamespace(p.Namespace)
	r.cluster(p, &l.Cluster)
	r.do(func() {
		said := greet(r.ctx, c.Config)
		l.Kubernetes, l.Now = said.kubernetes, said.now
	})
	r.do(func() {
		l.Announces = known(list[v1alpha1.MemberClusterAnnounce](r.ctx, r.client, &v1alpha1.MemberClusterAnnounceList{}, in))
	})
	r.do(func() {
		l.Exports = known(list[v1alpha1.ResourceExport](r.ctx, r.client, &v1alpha1.ResourceExportList{}, in))
	})
	r.do(func() {
		l.Imports = known(list[v1alpha1.ResourceImport](r.ctx, r.client, &v1alpha1.ResourceImportList{}, in))
	})
	r.do(func() {
		l.Slices = known(list[discoveryv1.EndpointSlice](r.ctx, r.client, &discoveryv1.EndpointSliceList{}, in))
	})
	r.do(func() { l.Accounts = known(r.accounts(in)) })
	r.do(func() { l.Secrets = known(r.secrets(in)) })
	r.do(func() { l.Grants = known(Grants(r.ctx, r.client, p.Namespace)) })
	r.do(func() {
		nodes, err := list[corev1.Node](r.ctx, r.client, &corev1.NodeList{})
		l.Nodes, l.Ranges = known(schedulable(nodes), err), known(ranges(nodes), err)
	})
	r.do(func() {
		configured, err := r.configuration(p.Namespace)
		l.Stretched = known(configured.EnableStretchedNetworkPolicy, err)
	})
	done()
	return l
}

func (r *reading) accounts(in client.ListOption) ([]admission.Account, error) {
	found, err := names(r.ctx, r.client, corev1.SchemeGroupVersion.WithKind("ServiceAccount"), in)
	accounts := make([]admission.Account, len(found))
	for i := range found {
		accounts[i] = admission.AccountOf(found[i].Name, found[i].Annotations)
	}
	return accounts, err
}

// secrets are the names of all Secrets of the common area; which of them hold
// tokens only their content would tell, and nobody needs to know.
func (r *reading) secrets(in client.ListOption) ([]string, error) {
	found, err := names(r.ctx, r.client, corev1.SchemeGroupVersion.WithKind("Secret"), in)
	var all []string
	for i := range found {
		all = append(all, found[i].Name)
	}
	return all, err
}

// ranges are the addresses of Nodes, each by itself, and the Pod ranges that
// Kubernetes gave them.
func ranges(nodes []corev1.Node) []netip.Prefix {
	var all []netip.Prefix
	for i := range nodes {
		for _, a := range nodes[i].Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
				all = append(all, netip.PrefixFrom(ip, ip.BitLen()))
			}
		}
		for _, text := range nodes[i].Spec.PodCIDRs {
			if p, err := netip.ParsePrefix(text); err == nil {
				all = append(all, p.Masked())
			}
		}
	}
	return all
}

// schedulable counts the Nodes that take any Pod.
func schedulable(nodes []corev1.Node) int {
	n := 0
	for i := range nodes {
		closed := slices.ContainsFunc(nodes[i].Spec.Taints, func(t corev1.Taint) bool {
			return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
		})
		if !nodes[i].Spec.Unschedulable && !closed && ready(&nodes[i]) {
			n++
		}
	}
	return n
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
