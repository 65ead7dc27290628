package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LabelIdentity is the number of one distinct set of Namespace and Pod labels.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Label",type=string,JSONPath=`.spec.label`
// +kubebuilder:printcolumn:name="ID",type=integer,JSONPath=`.spec.id`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LabelIdentity struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec LabelIdentitySpec `json:"spec,omitempty"`
}

// LabelIdentitySpec pairs a normalized label with its number.
type LabelIdentitySpec struct {
	Label string `json:"label,omitempty"`
	// ID is at most 16777215.
	// +kubebuilder:validation:Format=int32
	ID uint32 `json:"id,omitempty"`
}

// LabelIdentityList is a list of LabelIdentities.
//
// +kubebuilder:object:root=true
type LabelIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LabelIdentity `json:"items"`
}
