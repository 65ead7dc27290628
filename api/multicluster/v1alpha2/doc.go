// Package v1alpha2 holds ClusterSet as it is stored today, and the legacy
// ClusterClaim (removed upstream in v1.13) so that it can be recognised.
//
// +kubebuilder:object:generate=true
// +groupName=multicluster.crd.antrea.io
package v1alpha2
