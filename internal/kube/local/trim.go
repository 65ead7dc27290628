package local

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// TrimSlice is a transform of a cache: of slices that are not ours, which this
// process reads and never writes, it leaves out what no plan looks at. A cluster
// has a slice for every Service, exported or not, and the reference to the Pod is
// the largest part of an endpoint. Ours are written from the copy in the cache,
// so they are kept whole.
func TrimSlice(object any) (any, error) {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok {
		return object, nil // the word that an object is gone
	}
	slice.ManagedFields = nil
	if _, ours := slice.Labels[v1alpha1.LabelClusterSet]; ours {
		return slice, nil
	}
	slice.Annotations, slice.OwnerReferences = nil, nil
	for i := range slice.Endpoints {
		endpoint := &slice.Endpoints[i]
		endpoint.TargetRef, endpoint.Hints, endpoint.DeprecatedTopology = nil, nil, nil
	}
	return slice, nil
}

// TrimNamespace leaves of a Namespace whether it is there, whether it is going,
// and its labels.
func TrimNamespace(object any) (any, error) {
	namespace, ok := object.(*corev1.Namespace)
	if !ok {
		return object, nil
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace.Name, UID: namespace.UID, Labels: namespace.Labels, ResourceVersion: namespace.ResourceVersion,
		CreationTimestamp: namespace.CreationTimestamp, DeletionTimestamp: namespace.DeletionTimestamp,
	}}, nil
}

// TrimPod leaves of a Pod its labels.
func TrimPod(object any) (any, error) {
	pod, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: pod.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Labels: pod.Labels, ResourceVersion: pod.ResourceVersion,
	}}, nil
}
