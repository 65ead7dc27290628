// Package v1alpha1 holds the kinds of fleet.lockstep.dev/v1alpha1: what a person
// wants to become of several clusters together, and how far that has come.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.lockstep.dev
package v1alpha1
