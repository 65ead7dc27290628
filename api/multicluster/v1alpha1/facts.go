package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// ServiceFacts is what merging by KEP-1645 needs to know of an export and the
// wire payload does not say. It travels as JSON in AnnotationService.
type ServiceFacts struct {
	// UID and Created are those of the ServiceExport in its own cluster; the
	// oldest export wins a conflict, whenever it reached the leader.
	UID                   types.UID                            `json:"uid,omitempty"`
	Created               metav1.Time                          `json:"created,omitempty"`
	Type                  mcsv1beta1.ServiceImportType         `json:"type,omitempty"`
	SessionAffinity       corev1.ServiceAffinity               `json:"sessionAffinity,omitempty"`
	SessionAffinityConfig *corev1.SessionAffinityConfig        `json:"sessionAffinityConfig,omitempty"`
	IPFamilies            []corev1.IPFamily                    `json:"ipFamilies,omitempty"`
	InternalTrafficPolicy *corev1.ServiceInternalTrafficPolicy `json:"internalTrafficPolicy,omitempty"`
	TrafficDistribution   *string                              `json:"trafficDistribution,omitempty"`
	Labels                map[string]string                    `json:"labels,omitempty"`
	Annotations           map[string]string                    `json:"annotations,omitempty"`
}

// MergeFacts is what an importer needs to know of a merged Service and a
// ResourceImport has no field for. It travels as JSON in AnnotationMerge.
type MergeFacts struct {
	// RefusedPorts lists, per cluster, the names of ports that lost a conflict:
	// no traffic for these may go to that cluster.
	RefusedPorts map[string][]string `json:"refusedPorts,omitempty"`
	Labels       map[string]string   `json:"labels,omitempty"`
	Annotations  map[string]string   `json:"annotations,omitempty"`
}

// ExchangeMode tells own members which representations of endpoints the common
// area needs.
// +kubebuilder:validation:Enum=Slices;SlicesAndWire
type ExchangeMode string

const (
	// ExchangeSlices: all peers are our own, endpoints travel as EndpointSlices.
	ExchangeSlices ExchangeMode = "Slices"
	// ExchangeSlicesAndWire: an upstream member takes part, so wire Endpoints
	// exports are written as well.
	ExchangeSlicesAndWire ExchangeMode = "SlicesAndWire"
)

// LeaderStamp is our leader's answer on a member's announce: it has seen the
// member. It travels as JSON in AnnotationLeader.
type LeaderStamp struct {
	ClusterSetUID types.UID    `json:"clusterSetUID"`
	Exchange      ExchangeMode `json:"exchange"`
	// Merged repeats the value of AnnotationPublished for which the leader has
	// found every export of the member in the imports.
	Merged string `json:"merged,omitempty"`
}

// LeaderMemory is what a member must know of the common area across its own
// restarts, to notice one that was restored. JSON in AnnotationLeaderSeen.
type LeaderMemory struct {
	ClusterSetUID types.UID `json:"clusterSetUID,omitempty"`
	// Revision is a resource version of the leader's API server that the
	// common area had reached.
	Revision uint64 `json:"revision,omitempty"`
	// Touch is the touch-ts of this member's announce at about that time. An
	// announce with an older one is from a backup.
	Touch string `json:"touch,omitempty"`
	// HoldSince is set while withdrawals are held back.
	HoldSince *metav1.Time `json:"holdSince,omitempty"`
}

// LossPolicy says what importers do with the endpoints of a member that is lost.
// +kubebuilder:validation:Enum=Keep;NotReady;Withdraw
type LossPolicy string

const (
	// LossKeep, the default: they stay as they are.
	LossKeep LossPolicy = "Keep"
	// LossNotReady: they stay in their slices and are not ready.
	LossNotReady LossPolicy = "NotReady"
	// LossWithdraw: they go; Service, IP and ServiceImport stay.
	LossWithdraw LossPolicy = "Withdraw"
)

// MemberLoss is what our leader tells every own member of those it does not hear
// any more. JSON in AnnotationLost of one ResourceImport, which is there only
// while there is somebody to tell of.
type MemberLoss struct {
	// Policy of the ClusterSet; a member may have one of its own.
	Policy LossPolicy `json:"policy"`
	// Clusters that are lost, sorted.
	Clusters []string `json:"clusters"`
}
