package local

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// TrimNode leaves out of a cached Node what nobody here reads; the images alone
// are most of it. It is a transform of a cache.
func TrimNode(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.ManagedFields = nil
		node.Status.Images, node.Status.VolumesInUse, node.Status.VolumesAttached = nil, nil, nil
		node.Status.Capacity, node.Status.Allocatable = nil, nil
	}
	return object, nil
}

// NodeChanged lets pass what can matter to who carries traffic; a kubelet
// reports on its Node every few minutes, which most often is no news.
func NodeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return !maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
			before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
			!nodeEqual(before, after)
	}}
}

func nodeEqual(a, b client.Object) bool {
	before, ok := a.(*corev1.Node)
	after, alike := b.(*corev1.Node)
	return ok && alike && before.Spec.Unschedulable == after.Spec.Unschedulable &&
		equality.Semantic.DeepEqual(before.Status.Addresses, after.Status.Addresses) &&
		readiness(before) == readiness(after)
}

func readiness(node *corev1.Node) corev1.ConditionStatus {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 {
		return corev1.ConditionUnknown
	}
	return node.Status.Conditions[i].Status
}
