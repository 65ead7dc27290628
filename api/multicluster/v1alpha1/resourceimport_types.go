package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// ResourceImport is one merged resource the leader hands to the members.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.namespace`
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ResourceImportSpec   `json:"spec,omitempty"`
	Status ResourceImportStatus `json:"status,omitempty"`
}

// ResourceImportSpec carries the tuple and the payload. Some keys differ in
// case from ResourceExport; that is the wire.
type ResourceImportSpec struct {
	// ClusterIDs lists the target members; empty means all.
	ClusterIDs []string `json:"clusterID,omitempty"`
	Name       string   `json:"name,omitempty"`
	Namespace  string   `json:"namespace,omitempty"`
	Kind       string   `json:"kind,omitempty"`

	ServiceImport        *mcsv1beta1.ServiceImport `json:"serviceImport,omitempty"`
	Endpoints            *EndpointsImport          `json:"endpoints,omitempty"`
	ClusterInfo          *ClusterInfo              `json:"clusterinfo,omitempty"`
	ExternalEntity       *ExternalEntityImport     `json:"externalentity,omitempty"`
	ClusterNetworkPolicy *ClusterNetworkPolicy     `json:"clusternetworkpolicy,omitempty"`
	LabelIdentity        *LabelIdentitySpec        `json:"labelIdentity,omitempty"`
	Raw                  *RawResource              `json:"raw,omitempty"`
}

// EndpointsImport is the payload of kind Endpoints: the subsets of all exporters.
type EndpointsImport = EndpointsExport

// ExternalEntityImport is declared on the wire and unused.
type ExternalEntityImport struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	ExternalEntitySpec *Opaque `json:"externalentityspec,omitempty"`
}

// ResourceImportStatus says, per cluster, how the import fared there.
type ResourceImportStatus struct {
	ClusterStatuses []ResourceImportClusterStatus `json:"clusterStatuses,omitempty"`
}

// ResourceImportClusterStatus is one cluster's part of the status.
type ResourceImportClusterStatus struct {
	ClusterID  string              `json:"clusterID,omitempty"`
	Conditions []ResourceCondition `json:"conditions,omitempty"`
}

// ResourceImportList is a list of ResourceImports.
//
// +kubebuilder:object:root=true
type ResourceImportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceImport `json:"items"`
}
