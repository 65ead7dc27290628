package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of all kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "fleet.lockstep.dev", Version: "v1alpha1"}

// AddToScheme teaches a scheme the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &UpgradeRun{}, &UpgradeRunList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
