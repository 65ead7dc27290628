package services

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setLabels puts labels among those of an object. The map found there is left
// as it is, because it may belong to a cache.
func setLabels(o metav1.Object, labels map[string]string) {
	o.SetLabels(with(o.GetLabels(), labels))
}

// setAnnotation puts one annotation on an object; an empty value takes it away.
func setAnnotation(o metav1.Object, key, value string) {
	if value == "" {
		annotations := maps.Clone(o.GetAnnotations())
		delete(annotations, key)
		o.SetAnnotations(annotations)
		return
	}
	o.SetAnnotations(with(o.GetAnnotations(), map[string]string{key: value}))
}

// with is a new map: pairs over those of base.
func with(base, pairs map[string]string) map[string]string {
	joined := make(map[string]string, len(base)+len(pairs))
	maps.Copy(joined, base)
	maps.Copy(joined, pairs)
	return joined
}
