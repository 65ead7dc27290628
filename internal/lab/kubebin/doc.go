// Package kubebin provides the programs of a Kubernetes control plane: from a
// folder that holds them, or built once from source into a cache.
//
// The source is the module tools/kube. A copy of its three files is embedded
// here, so that a lockstep binary anywhere can build its control plane with
// nothing but Go, and so that what is built cannot depend on the folder the
// user stands in. A test keeps the copy equal to the module.
package kubebin

//go:generate cp ../../../tools/kube/main.go source/main.go.txt
//go:generate cp ../../../tools/kube/go.mod source/go.mod.txt
//go:generate cp ../../../tools/kube/go.sum source/go.sum.txt
