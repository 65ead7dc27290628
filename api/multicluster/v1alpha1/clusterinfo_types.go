package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterInfo describes the network of one member.
type ClusterInfo struct {
	ClusterID string `json:"clusterID,omitempty"`
	// ServiceCIDR is one IPv4 CIDR.
	ServiceCIDR string `json:"serviceCIDR,omitempty"`
	// GatewayInfos has one element today.
	GatewayInfos []GatewayInfo  `json:"gatewayInfos,omitempty"`
	PodCIDRs     []string       `json:"podCIDRs,omitempty"`
	WireGuard    *WireGuardInfo `json:"wireGuard,omitempty"`
}

// GatewayInfo is where peers reach the member's gateway.
type GatewayInfo struct {
	GatewayIP string `json:"gatewayIP,omitempty"`
}

// WireGuardInfo is what a peer needs for an encrypted tunnel.
type WireGuardInfo struct {
	// PublicKey in base64.
	PublicKey string `json:"publicKey,omitempty"`
}

// ClusterInfoImport is a peer's ClusterInfo in a member cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="Cluster ID",type=string,JSONPath=`.spec.clusterID`
// +kubebuilder:printcolumn:name="Service CIDR",type=string,JSONPath=`.spec.serviceCIDR`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterInfoImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterInfo             `json:"spec,omitempty"`
	Status ClusterInfoImportStatus `json:"status,omitempty"`
}

// ClusterInfoImportStatus has one condition, Ready. Upstream never writes it;
// our member tells there whether the network can be reached without doubt.
type ClusterInfoImportStatus struct {
	Conditions []ResourceCondition `json:"conditions,omitempty"`
}

// ClusterInfoImportList is a list of ClusterInfoImports.
//
// +kubebuilder:object:root=true
type ClusterInfoImportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterInfoImport `json:"items"`
}
