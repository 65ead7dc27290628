// Package v1alpha1 holds the kinds of multicluster.crd.antrea.io/v1alpha1: what
// a member announces and exports, what the leader hands out, and the schema of
// the controllers' configuration file. Field names and rules are those of the
// wire; a peer reads every byte of them.
//
// +kubebuilder:object:generate=true
// +groupName=multicluster.crd.antrea.io
package v1alpha1
