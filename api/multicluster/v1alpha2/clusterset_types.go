package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// ClusterSet is a group of clusters under one administration. Its name is the
// ClusterSet ID, equal in the leader and all members. A cluster that is leader
// and member has two, in two Namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="Leader Cluster Namespace",type=string,JSONPath=`.spec.namespace`,description="The namespace of the common area in the leader cluster"
// +kubebuilder:printcolumn:name="Total Clusters",type=string,JSONPath=`.status.totalClusters`,description="Number of clusters known"
// +kubebuilder:printcolumn:name="Ready Clusters",type=string,JSONPath=`.status.readyClusters`,description="Number of clusters ready"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterSetSpec            `json:"spec,omitempty"`
	Status v1alpha1.ClusterSetStatus `json:"status,omitempty"`
}

// ClusterSetSpec says which cluster this is and who leads it.
type ClusterSetSpec struct {
	// ClusterID of this cluster. Immutable once set (ADM-CS-2).
	ClusterID string `json:"clusterID"`
	// Leaders has exactly one element.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	Leaders []LeaderCluster `json:"leaders"`
	// Namespace of the common area in the leader cluster.
	Namespace string `json:"namespace,omitempty"`
}

// LeaderCluster names the leader and, on a member, how to reach it.
type LeaderCluster struct {
	ClusterID string `json:"clusterID,omitempty"`
	// Server is the URL of the leader's API server.
	Server string `json:"server,omitempty"`
	// Secret in the ClusterSet's Namespace with keys ca.crt and token.
	Secret string `json:"secret,omitempty"`
}

// ClusterSetList is a list of ClusterSets.
//
// +kubebuilder:object:root=true
type ClusterSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterSet `json:"items"`
}
