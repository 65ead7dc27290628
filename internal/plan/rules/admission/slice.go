package admission

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Slice decides a request for an EndpointSlice of the common area, in which own
// peers exchange endpoints. It is bound by the same identity as an export.
func Slice(r Request[discoveryv1.EndpointSlice], o StatusObserved) Verdict {
	return decide("EndpointSlice", sliceSteps, r, o)
}

type sliceRequest = Request[discoveryv1.EndpointSlice]

var sliceSteps = []Step[discoveryv1.EndpointSlice, StatusObserved]{
	legible[discoveryv1.EndpointSlice, StatusObserved](""),
	{
		Rule: rule.Rule{
			ID: "ADM-ES-1", Severity: rule.Refuse, Title: "Members publish endpoints with a bound credential",
			Why:    "The addresses in a slice receive the traffic of a Service in every cluster.",
			Remedy: "use a member token made by lockstep mc create membertoken",
			Source: "our exchange of endpoints, bound as exports are by ADM-RE",
		},
		judge: func(r sliceRequest, o StatusObserved) ruling {
			if r.deletes() && r.Old.DeletionTimestamp != nil {
				return allow
			}
			if standing := standingOf(r, o); standing.end != undecided {
				return standing
			}
			return denyIf(o.bound() == "", "the caller is bound to no cluster ID")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-ES-2", Severity: rule.Refuse, Title: "A member changes only its own slices",
			Why:    "Whoever changes a slice decides where the traffic of its Service goes, in every cluster.",
			Remedy: "use the member token of the cluster the slice belongs to",
			Source: "our exchange of endpoints, bound as exports are by ADM-RE",
		},
		judge: func(r sliceRequest, o StatusObserved) ruling {
			return denyIf(!r.creates() && r.Old.Labels[mcsv1beta1.LabelSourceCluster] != o.bound(), "the slice does not belong to the caller's cluster")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-ES-3", Severity: rule.Refuse, Title: "The labels of a slice are true",
			Why:    "Importers find a slice by its labels, and proxies of the leader cluster leave it alone because of one.",
			Remedy: "set the labels as the member controller does",
			Source: "our exchange of endpoints, bound as exports are by ADM-RE",
		},
		judge: func(r sliceRequest, o StatusObserved) ruling {
			if r.deletes() {
				return pass
			}
			labels := r.Object.Labels
			return denyIf(labels[mcsv1beta1.LabelSourceCluster] != o.bound() || labels[discoveryv1.LabelManagedBy] != v1alpha1.SliceManager ||
				labels["service.kubernetes.io/service-proxy-name"] != v1alpha1.SliceManager || labels[discoveryv1.LabelServiceName] != "",
				"its labels are not those of a slice of the caller's cluster")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-ES-4", Severity: rule.Refuse, Title: "The name of a slice follows from its Service",
			Why:    "A free name could take the place of another member's slice before that is written.",
			Remedy: "name it as the member controller does",
			Source: "our exchange of endpoints, bound as exports are by ADM-RE",
		},
		judge: func(r sliceRequest, o StatusObserved) ruling {
			if r.deletes() {
				return pass
			}
			service := types.NamespacedName{Namespace: r.Object.Labels[v1alpha1.LabelServiceNamespace], Name: r.Object.Labels[mcsv1beta1.LabelServiceName]}
			_, ok := identity.SliceNumber(r.Object.Name, o.bound(), service)
			return denyIf(!ok || !isLabel(service.Namespace) || !isLabel(service.Name), "its name does not follow from its labels")
		},
	},
}
