package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceExport is one resource a member offers to the ClusterSet.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="Cluster ID",type=string,JSONPath=`.spec.clusterID`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.namespace`
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceExport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ResourceExportSpec   `json:"spec,omitempty"`
	Status ResourceExportStatus `json:"status,omitempty"`
}

// ResourceExportSpec carries the tuple (namespace, name, kind) of the exported
// resource and the payload that belongs to the kind.
type ResourceExportSpec struct {
	// ClusterID of the exporting member; empty on exports an administrator made.
	ClusterID string `json:"clusterID,omitempty"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Kind      string `json:"kind,omitempty"`

	Service              *ServiceExport        `json:"service,omitempty"`
	Endpoints            *EndpointsExport      `json:"endpoints,omitempty"`
	ClusterInfo          *ClusterInfo          `json:"clusterInfo,omitempty"`
	ExternalEntity       *ExternalEntityExport `json:"externalEntity,omitempty"`
	ClusterNetworkPolicy *ClusterNetworkPolicy `json:"clusterNetworkPolicy,omitempty"`
	LabelIdentity        *LabelIdentityExport  `json:"labelIdentity,omitempty"`
	Raw                  *RawResource          `json:"raw,omitempty"`
}

// ServiceExport is the payload of kind Service. Only the ports of the
// ServiceSpec are filled on the wire.
type ServiceExport struct {
	ServiceSpec corev1.ServiceSpec `json:"serviceSpec,omitempty"`
}

// EndpointsExport is the payload of kind Endpoints.
type EndpointsExport struct {
	Subsets []corev1.EndpointSubset `json:"subsets,omitempty"`
}

// LabelIdentityExport is the payload of kind LabelIdentity on an export.
type LabelIdentityExport struct {
	NormalizedLabel string `json:"normalizedLabel,omitempty"`
}

// ExternalEntityExport is declared on the wire and unused.
type ExternalEntityExport struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	ExternalEntitySpec *Opaque `json:"externalEntitySpec,omitempty"`
}

// RawResource is declared on the wire and unused.
type RawResource struct {
	Data []byte `json:"data,omitempty"`
}

// ResourceExportStatus is written by the leader. Its first element is the
// wire's: Succeeded/True or Failure/False. Own leaders add a Conflict element.
type ResourceExportStatus struct {
	Conditions []ResourceCondition `json:"conditions,omitempty"`
}

// ResourceCondition is the wire's shape of a condition.
type ResourceCondition struct {
	Type               ResourceConditionType  `json:"type,omitempty"`
	Status             corev1.ConditionStatus `json:"status,omitempty"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime,omitempty"`
	Message            string                 `json:"message,omitempty"`
	Reason             string                 `json:"reason,omitempty"`
}

// ResourceConditionType names what a ResourceCondition speaks of.
type ResourceConditionType string

const (
	// ResourceSucceeded with status True: the leader merged the export, or a
	// member has imported the import.
	ResourceSucceeded ResourceConditionType = "Succeeded"
	// ResourceFailure with status False (sic): the leader refused the export.
	ResourceFailure ResourceConditionType = "Failure"
	// ResourceConflict tells an own member how its export fared in the merge;
	// reasons are those of the MCS API.
	ResourceConflict ResourceConditionType = "Conflict"

	// ResourceReady on a ClusterInfoImport: nothing speaks against carrying
	// traffic to that cluster.
	ResourceReady ResourceConditionType = "Ready"

	// ResourceImported on the export of a policy, behind the wire's first element:
	// whether every member that it is meant for has imported it.
	ResourceImported ResourceConditionType = "Imported"

	// ReasonConvergeFailure is the wire's reason of ResourceFailure.
	ReasonConvergeFailure = "ConvergeFailure"
)

// ResourceExportList is a list of ResourceExports.
//
// +kubebuilder:object:root=true
type ResourceExportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceExport `json:"items"`
}
