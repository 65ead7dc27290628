package webhook

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// PathClusterSet is where both roles are asked about ClusterSets.
const PathClusterSet = "/validate-multicluster-crd-antrea-io-v1alpha2-clusterset"

// ClusterSets decides about the ClusterSets of a Namespace, of a leader or a
// member. The reader must not be a cache: a second ClusterSet that follows at once
// would not be seen.
func ClusterSets(live client.Reader, namespace string, leader bool) Decide {
	return Verdict(func(ctx context.Context, r *admissionv1.AdmissionRequest) admission.Verdict {
		o := admission.ClusterSetObserved{Leader: leader}
		if r.Operation == admissionv1.Create {
			var sets v1alpha2.ClusterSetList
			err := live.List(ctx, &sets, client.InNamespace(namespace))
			o.ClusterSets = Known(ctx, len(sets.Items), err)
		}
		if r.Operation == admissionv1.Delete && leader {
			var announces v1alpha1.MemberClusterAnnounceList
			err := live.List(ctx, &announces, client.InNamespace(namespace))
			o.Announces = Known(ctx, len(announces.Items), err)
		}
		return admission.ClusterSet(admission.Decode[v1alpha2.ClusterSet](r), o)
	})
}

// Known is what was read, unless that failed. Why it did is for the log: to the
// caller it might tell more than it should.
func Known[T any](ctx context.Context, value T, err error) rule.Read[T] {
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot read what a decision depends on")
		return rule.Unreadable[T]("no answer")
	}
	return rule.Known(value)
}
