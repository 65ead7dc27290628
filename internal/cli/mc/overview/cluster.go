// Package overview joins what several clusters say of their ClusterSets into
// one page: who belongs, who hears whom, what is exported and imported, and what
// is wrong with a next step for each.
//
// New is a pure function of what was read and of the time. Table, JSON and YAML
// are written from the value it returns.
package overview

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// Cluster is what was read through one kubeconfig context.
type Cluster struct {
	Context string
	// UID of Namespace kube-system: two contexts may lead to one cluster.
	UID types.UID
	// Failure says why nothing could be read; "" when the cluster answered.
	Failure string
	// Next is what to do about the failure; "" for the usual.
	Next string
	// Right is what these credentials lack, where that is the failure.
	Right exit.Right
	// Gaps are what else could not be read.
	Gaps []Gap

	ClusterSets []v1alpha2.ClusterSet

	// Of the Namespaces in which this cluster leads.
	Announces       []v1alpha1.MemberClusterAnnounce
	ResourceExports []v1alpha1.ResourceExport
	Accounts        []corev1.ServiceAccount
	Leases          []coordinationv1.Lease
	// Losses are what the leader tells members of those it does not hear.
	Losses []v1alpha1.ResourceImport

	// Of a cluster that is a member.
	ServiceExports []mcsv1beta1.ServiceExport
	ServiceImports []mcsv1beta1.ServiceImport
	// Slices of imported Services.
	Slices []discoveryv1.EndpointSlice
}

// Gap is something that could not be read.
type Gap struct {
	Why string
	// Right that would have to be granted; the zero value when that would not help.
	Right exit.Right
}

// isMember tells a membership from the leader's own ClusterSet.
func isMember(set *v1alpha2.ClusterSet) bool {
	return len(set.Spec.Leaders) > 0 && set.Spec.Leaders[0].Server != ""
}

func leaderID(set *v1alpha2.ClusterSet) string {
	if len(set.Spec.Leaders) == 0 {
		return ""
	}
	return set.Spec.Leaders[0].ClusterID
}
