package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MemberClusterAnnounce is a member's sign of life in the common area. Its
// fields are top level on the wire; the heartbeat time is an annotation.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="Cluster ID",type=string,JSONPath=`.clusterID`
// +kubebuilder:printcolumn:name="ClusterSet ID",type=string,JSONPath=`.clusterSetID`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MemberClusterAnnounce struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Cluster ID of the member.
	ClusterID string `json:"clusterID,omitempty"`
	// Name of the member's ClusterSet.
	ClusterSetID string `json:"clusterSetID,omitempty"`
	// Cluster ID of the leader, as the member knows it.
	LeaderClusterID string `json:"leaderClusterID,omitempty"`
}

// MemberClusterAnnounceList is a list of MemberClusterAnnounces.
//
// +kubebuilder:object:root=true
type MemberClusterAnnounceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemberClusterAnnounce `json:"items"`
}
