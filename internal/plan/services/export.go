package services

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// ExportObserved is everything that what a member publishes for one Service may
// depend on.
type ExportObserved struct {
	// Cluster is the ID of this member.
	Cluster string
	// Area is the namespace of the common area.
	Area string
	// Mode: addresses of Services or of Pods; empty is ClusterIP, as on the wire.
	Mode v1alpha1.EndpointIPType
	// Exchange unknown: only the Service export is published, and endpoints stay
	// as they are.
	Exchange clusterset.Exchange
	// Connected is false while the leader cannot be reached: only conditions
	// can be planned then, and Published is not looked at.
	Connected bool
	// Left: this cluster belongs to no ClusterSet, so nothing of it is exported.
	Left  bool
	Tuple Tuple
	// Export nil or being deleted withdraws everything.
	Export *mcsv1beta1.ServiceExport
	// Service of the tuple in this cluster; nil when it does not exist.
	Service *corev1.Service
	// Slices are the local EndpointSlices of the Service.
	Slices    []discoveryv1.EndpointSlice
	Published Published
}

// Published is what the common area holds under the names, or under the labels,
// of this tuple and cluster. Objects of others among it are left alone.
type Published struct {
	Service, Endpoints *v1alpha1.ResourceExport
	Slices             []discoveryv1.EndpointSlice
}

// ExportPlan is what a member should publish. Writes come before deletes in
// Slices, so that an endpoint is never missing in between.
type ExportPlan struct {
	Service, Endpoints Change[v1alpha1.ResourceExport]
	Slices             []Change[discoveryv1.EndpointSlice]
	// Conditions wanted on the ServiceExport, without times: MergeConditions
	// puts them there. Nil when there is no ServiceExport to speak on.
	Conditions []metav1.Condition
}

// Export decides what this member publishes for one Service.
func Export(o ExportObserved) ExportPlan {
	verdict := judge(o)
	plan := ExportPlan{Conditions: o.conditions(verdict)}
	switch {
	case !o.Connected:
		return plan
	case !verdict.exportable:
		o.withdraw(&plan)
	default:
		o.publish(&plan)
	}
	return plan
}

// publish wants the Service export, and of the endpoints what the exchange
// needs. An export without a ready endpoint keeps its Service export, and so
// its import and IP everywhere: by KEP-1645 existence follows the ServiceExport
// alone. The wire knows no endpoint that is not ready, so its Endpoints export
// goes.
func (o ExportObserved) publish(plan *ExportPlan) {
	plan.Service = o.ownExport(o.Published.Service, v1alpha1.KindService, o.servicePayload())
	if o.Exchange == clusterset.ExchangeUnknown {
		return
	}
	endpoints := o.endpoints()
	var wire *v1alpha1.ResourceExportSpec
	if o.Exchange.Wire() {
		wire = wirePayload(endpoints)
	}
	plan.Endpoints = o.ownExport(o.Published.Endpoints, v1alpha1.KindEndpoints, wire)
	if o.Exchange.Slices() {
		plan.Slices = Pack(o.Published.Slices, endpoints, o.layout())
	} else {
		plan.Slices = o.withdrawSlices()
	}
}

// withdraw wants nothing of this tuple in the common area (WK-18).
func (o ExportObserved) withdraw(plan *ExportPlan) {
	plan.Service = o.ownExport(o.Published.Service, v1alpha1.KindService, nil)
	plan.Endpoints = o.ownExport(o.Published.Endpoints, v1alpha1.KindEndpoints, nil)
	plan.Slices = o.withdrawSlices()
}

func (o ExportObserved) withdrawSlices() []Change[discoveryv1.EndpointSlice] {
	layout := o.layout()
	layout.Placeholder = ""
	return Pack(o.Published.Slices, nil, layout)
}
