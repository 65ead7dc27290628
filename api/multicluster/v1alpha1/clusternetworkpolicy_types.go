package v1alpha1

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// Opaque is JSON that is carried between clusters and never looked into.
type Opaque = apiextensionsv1.JSON

// ClusterNetworkPolicy is the spec of an Antrea ClusterNetworkPolicy. It is
// copied as it is; only these top-level fields travel.
type ClusterNetworkPolicy struct {
	Tier string `json:"tier,omitempty"`
	// Priority is a number; kept opaque so that it comes out as it went in.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=number
	// +required
	Priority Opaque `json:"priority"`
	// +kubebuilder:validation:items:Type=object
	AppliedTo []Opaque `json:"appliedTo,omitempty"`
	// +kubebuilder:validation:items:Type=object
	Ingress []Opaque `json:"ingress,omitempty"`
	// +kubebuilder:validation:items:Type=object
	Egress []Opaque `json:"egress,omitempty"`
}
