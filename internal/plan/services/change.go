package services

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// Tuple is the namespace and name of a Service: its identity everywhere in the
// ClusterSet, whatever the objects that speak of it are called.
type Tuple = types.NamespacedName

// Change is one object as it was seen and as it should be. Current nil is a
// create, Desired nil a delete, both nil nothing.
//
// Desired starts from a copy of Current, so fields and labels of others survive
// and its resource version guards the write. It shares no memory with what was
// observed. A plan holds no Change whose two sides are equal.
type Change[T any] struct{ Current, Desired *T }

// IsZero tells that nothing is to be done.
func (c Change[T]) IsZero() bool { return c.Current == nil && c.Desired == nil }

// Deletes tells that the object is to go.
func (c Change[T]) Deletes() bool { return c.Current != nil && c.Desired == nil }

// object is a pointer to an API object that can copy itself.
type object[T any] interface {
	*T
	DeepCopy() *T
}

// Diff is the change from current to desired, for plans of other objects.
func Diff[T any, P object[T]](current, desired P) Change[T] { return diff[T, P](current, desired) }

// diff is the change from current to desired, which may share memory with
// anything observed. Either may be nil.
func diff[T any, P object[T]](current, desired P) Change[T] {
	switch {
	case desired == nil:
		return Change[T]{Current: current}
	case current == nil:
		return Change[T]{Desired: desired.DeepCopy()}
	case apiequality.Semantic.DeepEqual(current, desired):
		return Change[T]{}
	}
	return Change[T]{Current: current, Desired: desired.DeepCopy()}
}
