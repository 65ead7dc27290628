package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterSet as it was before v1.13: no clusterID, which came from a
// ClusterClaim. Read to report it, never written: a write through this version
// loses spec.clusterID (API-LEG).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:deprecatedversion:warning="multicluster.crd.antrea.io/v1alpha1 ClusterSet is deprecated; use v1alpha2"
// +kubebuilder:printcolumn:name="Leader Cluster Namespace",type=string,JSONPath=`.spec.namespace`
// +kubebuilder:printcolumn:name="Total Clusters",type=string,JSONPath=`.status.totalClusters`
// +kubebuilder:printcolumn:name="Ready Clusters",type=string,JSONPath=`.status.readyClusters`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterSetSpec   `json:"spec,omitempty"`
	Status ClusterSetStatus `json:"status,omitempty"`
}

// ClusterSetSpec is the legacy shape.
type ClusterSetSpec struct {
	Members []MemberCluster `json:"members,omitempty"`
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	Leaders   []MemberCluster `json:"leaders"`
	Namespace string          `json:"namespace,omitempty"`
}

// MemberCluster names a cluster and how to reach it.
type MemberCluster struct {
	ClusterID      string `json:"clusterID,omitempty"`
	Server         string `json:"server,omitempty"`
	Secret         string `json:"secret,omitempty"`
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// ClusterSetStatus is shared in shape with v1alpha2.
type ClusterSetStatus struct {
	TotalClusters      int32                 `json:"totalClusters,omitempty"`
	ReadyClusters      int32                 `json:"readyClusters,omitempty"`
	Conditions         []ClusterSetCondition `json:"conditions,omitempty"`
	ClusterStatuses    []ClusterStatus       `json:"clusterStatuses,omitempty"`
	ObservedGeneration int64                 `json:"observedGeneration,omitempty"`
}

// ClusterSetCondition is a condition of the whole set.
type ClusterSetCondition struct {
	Type               ClusterSetConditionType `json:"type,omitempty"`
	Status             corev1.ConditionStatus  `json:"status,omitempty"`
	LastTransitionTime metav1.Time             `json:"lastTransitionTime,omitempty"`
	Message            string                  `json:"message,omitempty"`
	Reason             string                  `json:"reason,omitempty"`
}

// ClusterSetConditionType: only Ready exists.
type ClusterSetConditionType string

// ClusterSetReady is the one condition of a ClusterSet.
const ClusterSetReady ClusterSetConditionType = "Ready"

// ClusterStatus is the state of one cluster of the set.
type ClusterStatus struct {
	ClusterID  string             `json:"clusterID,omitempty"`
	Conditions []ClusterCondition `json:"conditions,omitempty"`
}

// ClusterCondition is a condition of one cluster of the set.
type ClusterCondition struct {
	Type               ClusterConditionType   `json:"type,omitempty"`
	Status             corev1.ConditionStatus `json:"status,omitempty"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime,omitempty"`
	Message            string                 `json:"message,omitempty"`
	Reason             string                 `json:"reason,omitempty"`
}

// ClusterConditionType names what a ClusterCondition speaks of.
type ClusterConditionType string

const (
	ClusterReady    ClusterConditionType = "Ready"
	ClusterIsLeader ClusterConditionType = "IsLeader"
	// ClusterConnected is declared on the wire and never produced.
	ClusterConnected ClusterConditionType = "ClusterConnected"
	// ClusterNetworkConflict is ours, and there only while it is True: addresses
	// that the cluster claims are claimed by another as well.
	ClusterNetworkConflict ClusterConditionType = "NetworkConflict"
	// ClusterCleanUpPending is ours, and there only while it is True: the cluster
	// has been silent for so long that what it exports is about to be deleted.
	ClusterCleanUpPending ClusterConditionType = "CleanUpPending"
)

// ClusterSetList is a list of ClusterSets.
//
// +kubebuilder:object:root=true
type ClusterSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterSet `json:"items"`
}
