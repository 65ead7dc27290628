package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Gateway is the active gateway Node of a member; its name is the Node's.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="Gateway IP",type=string,JSONPath=`.gatewayIP`
// +kubebuilder:printcolumn:name="Internal IP",type=string,JSONPath=`.internalIP`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Gateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Tunnel address for other clusters.
	GatewayIP string `json:"gatewayIP,omitempty"`
	// Tunnel address for Nodes of this cluster.
	InternalIP string `json:"internalIP,omitempty"`
	// Service CIDR of this cluster.
	ServiceCIDR string         `json:"serviceCIDR,omitempty"`
	WireGuard   *WireGuardInfo `json:"wireGuard,omitempty"`
}

// GatewayList is a list of Gateways.
//
// +kubebuilder:object:root=true
type GatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gateway `json:"items"`
}
