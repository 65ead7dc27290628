package v1alpha2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Names of the ClusterClaims that were once in use.
const (
	// ClaimClusterID holds the cluster ID of this cluster.
	ClaimClusterID = "id.k8s.io"
	// ClaimClusterSetID is never read any more: the ClusterSet's name decides (API-LEG-3).
	ClaimClusterSetID = "clusterset.k8s.io"
)

// ClusterClaim is how a cluster stated its ID before v1.13.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:deprecatedversion:warning="ClusterClaim is deprecated; set spec.clusterID of the ClusterSet"
// +kubebuilder:printcolumn:name="Value",type=string,JSONPath=`.value`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Value string `json:"value"`
}

// ClusterClaimList is a list of ClusterClaims.
//
// +kubebuilder:object:root=true
type ClusterClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterClaim `json:"items"`
}
