// Package podref finds the ConfigMaps and Secrets a Pod refers to, so that the
// node watches those and no others.
package podref

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Kind is the kind of an object a Pod refers to.
type Kind string

const (
	ConfigMap Kind = "ConfigMap"
	Secret    Kind = "Secret"
)

// Ref names one object in the Pod's namespace.
type Ref struct {
	Kind Kind
	Name string
}

// Objects are the referred objects that exist, by name.
type Objects struct {
	ConfigMaps map[string]*corev1.ConfigMap
	Secrets    map[string]*corev1.Secret
}

// Of lists what the volumes and environments of a Pod refer to, sorted, each
// once.
func Of(pod *corev1.Pod) []Ref {
	var refs []Ref
	for _, v := range pod.Spec.Volumes {
		refs = append(refs, ofVolume(v)...)
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		refs = append(refs, ofEnvironment(c)...)
	}
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(refs)
}

func ofVolume(v corev1.Volume) []Ref {
	var refs []Ref
	if v.ConfigMap != nil {
		refs = append(refs, Ref{ConfigMap, v.ConfigMap.Name})
	}
	if v.Secret != nil {
		refs = append(refs, Ref{Secret, v.Secret.SecretName})
	}
	if v.Projected == nil {
		return refs
	}
	for _, source := range v.Projected.Sources {
		if source.ConfigMap != nil {
			refs = append(refs, Ref{ConfigMap, source.ConfigMap.Name})
		}
		if source.Secret != nil {
			refs = append(refs, Ref{Secret, source.Secret.Name})
		}
	}
	return refs
}

func ofEnvironment(c corev1.Container) []Ref {
	var refs []Ref
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			refs = append(refs, Ref{ConfigMap, from.ConfigMapRef.Name})
		}
		if from.SecretRef != nil {
			refs = append(refs, Ref{Secret, from.SecretRef.Name})
		}
	}
	for _, env := range c.Env {
		if env.ValueFrom == nil {
			continue
		}
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			refs = append(refs, Ref{ConfigMap, ref.Name})
		}
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			refs = append(refs, Ref{Secret, ref.Name})
		}
	}
	return refs
}
