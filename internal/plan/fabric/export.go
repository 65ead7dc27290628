package fabric

import (
	"fmt"
	"maps"
	"slices"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// ExportObserved is all that a member's ClusterInfo export depends on.
type ExportObserved struct {
	Cluster   string // this cluster's ID
	Area      string // Namespace of the common area
	Namespace string // of the member
	// Gateway that stands for this cluster; nil when there is none.
	Gateway *v1alpha1.Gateway
	// Successor: there is no Gateway at this moment, but a Node that will be it.
	Successor bool
	PodCIDRs  []string
	// Export as the common area holds it; nil when it holds none.
	Export *v1alpha1.ResourceExport
}

// Info is what this cluster tells others of its network; nil when it has no
// gateway and so nothing to tell.
func (o ExportObserved) Info() *v1alpha1.ClusterInfo {
	if o.Gateway == nil {
		return nil
	}
	info := &v1alpha1.ClusterInfo{
		ClusterID:    o.Cluster,
		ServiceCIDR:  o.Gateway.ServiceCIDR,
		GatewayInfos: []v1alpha1.GatewayInfo{{GatewayIP: o.Gateway.GatewayIP}},
		PodCIDRs:     slices.Clone(o.PodCIDRs),
	}
	if key := o.Gateway.WireGuard; key != nil && key.PublicKey != "" {
		info.WireGuard = &v1alpha1.WireGuardInfo{PublicKey: key.PublicKey}
	}
	return info
}

// Export decides the ClusterInfo export (MEM-CI-1). When another Node takes over
// as the gateway the export stays and is changed in place: peers see an address
// change and keep what does not depend on it (WK-10).
func Export(o ExportObserved) Change[v1alpha1.ResourceExport] {
	current := o.Export
	if current != nil && (current.DeletionTimestamp != nil || !o.owns(current)) {
		return Change[v1alpha1.ResourceExport]{} // it has to be gone first
	}
	info := o.Info()
	if info == nil {
		if o.Successor {
			return Change[v1alpha1.ResourceExport]{}
		}
		return services.Diff(current, nil)
	}
	desired := &v1alpha1.ResourceExport{}
	if current != nil {
		*desired = *current
	}
	desired.Namespace, desired.Name = o.Area, identity.ClusterInfoName(o.Cluster)
	desired.Labels = maps.Clone(desired.Labels)
	if desired.Labels == nil {
		desired.Labels = map[string]string{}
	}
	desired.Labels[v1alpha1.LabelSourceKind] = v1alpha1.KindClusterInfo
	desired.Labels[v1alpha1.LabelSourceClusterID] = o.Cluster
	if !slices.ContainsFunc(desired.Finalizers, isExportFinalizer) {
		desired.Finalizers = append(slices.Clone(desired.Finalizers), v1alpha1.FinalizerExport)
	}
	desired.Spec = v1alpha1.ResourceExportSpec{
		ClusterID: o.Cluster, Name: o.Cluster, Namespace: o.Namespace, Kind: v1alpha1.KindClusterInfo, ClusterInfo: info,
	}
	return services.Diff(current, desired)
}

// HasToGo tells that something has to leave the common area before the export
// can be written.
func (o ExportObserved) HasToGo() bool {
	return o.Export != nil && o.Export.DeletionTimestamp != nil && o.Gateway != nil
}

// Obstacle tells what is at the name of our export and is not ours; empty when
// nothing is.
func (o ExportObserved) Obstacle() string {
	if o.Export == nil || o.owns(o.Export) {
		return ""
	}
	return fmt.Sprintf("the ResourceExport %q in the common area is of kind %q and cluster %q; have the ClusterSet's administrator remove it",
		o.Export.Name, o.Export.Spec.Kind, o.Export.Spec.ClusterID)
}

// owns tells whether what is at the name of our export is ours.
func (o ExportObserved) owns(export *v1alpha1.ResourceExport) bool {
	return export.Spec.ClusterID == o.Cluster && export.Spec.Kind == v1alpha1.KindClusterInfo
}

func isExportFinalizer(f string) bool {
	return f == v1alpha1.FinalizerExport || f == v1alpha1.FinalizerExportLegacy
}
