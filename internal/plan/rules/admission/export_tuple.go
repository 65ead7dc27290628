package admission

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// memberKinds are what a member may export.
var memberKinds = []string{v1alpha1.KindService, v1alpha1.KindEndpoints, v1alpha1.KindClusterInfo, v1alpha1.KindLabelIdentity}

// exportTupleSteps ask what the new object says it is.
var exportTupleSteps = []exportStep{
	{
		Rule: rule.Rule{
			ID: "ADM-RE-10", Severity: rule.Refuse, Title: "Members export Services, their network and their labels",
			Why:    "A policy for the whole set is an administrator's to make, not that of one member.",
			Remedy: "let an administrator of the leader cluster create it",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, _ ExportObserved) ruling {
			return denyIf(!slices.Contains(memberKinds, r.Object.Spec.Kind), "members cannot export kind %q", r.Object.Spec.Kind)
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-11", Severity: rule.Refuse, Title: "An export carries what it exports",
			Why:    "Without its payload there is nothing to merge, and the Service would count as exported.",
			Remedy: "fill spec.service or spec.endpoints, whichever the kind asks for",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, _ ExportObserved) ruling {
			spec := r.Object.Spec
			return denyIf(spec.Kind == v1alpha1.KindService && spec.Service == nil || spec.Kind == v1alpha1.KindEndpoints && spec.Endpoints == nil,
				"the payload of kind %q is missing", spec.Kind)
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-12", Severity: rule.Refuse, Title: "Names that a Service can have",
			Why:    "No importer could make a Service or find a Namespace of another name.",
			Remedy: "use lower-case letters, digits and dashes, at most 63",
			Source: "webhooks of Antrea Multi-cluster v2.7, RFC 1123",
		},
		judge: func(r exportRequest, _ ExportObserved) ruling {
			return denyIf(ofService(r.Object) && (!isLabel(r.Object.Spec.Namespace) || !isLabel(r.Object.Spec.Name)),
				"spec.namespace and spec.name have to be DNS labels")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-13", Severity: rule.Refuse, Title: "An export names the caller's cluster",
			Why:    "The cluster of an export decides who it counts for in a merge, and who may change it.",
			Remedy: "set spec.clusterID to the cluster ID of the member token",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, o ExportObserved) ruling {
			return denyIf(r.Object.Spec.ClusterID != o.bound(), "spec.clusterID is not that of the caller's credential")
		},
	},
}

// exportLabelSteps ask whether labels, name and finalizer agree with that.
var exportLabelSteps = []exportStep{
	{
		Rule: rule.Rule{
			ID: "ADM-RE-14", Severity: rule.Refuse, Title: "The label of the source cluster is true",
			Why:    "Exports are found by their labels. A false one hides an export from its member, or lays it at another's door.",
			Remedy: "set the label sourceClusterID to the cluster ID of the member token",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, o ExportObserved) ruling {
			return denyIf(r.Object.Labels[v1alpha1.LabelSourceClusterID] != o.bound(), "label sourceClusterID is not the caller's cluster ID")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-15", Severity: rule.Refuse, Title: "The label of the kind is true",
			Why:    "Exports are found by their labels, and one found under a wrong kind is read wrongly.",
			Remedy: "set the label sourceKind to spec.kind",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, _ ExportObserved) ruling {
			return denyIf(r.Object.Labels[v1alpha1.LabelSourceKind] != r.Object.Spec.Kind, "label sourceKind is not spec.kind")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-16", Severity: rule.Refuse, Title: "The labels of the Service are true",
			Why:    "Exports are found by their labels, and one found under a wrong Service would be taken away with that.",
			Remedy: "set the labels sourceNamespace and sourceName to spec.namespace and spec.name",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, _ ExportObserved) ruling {
			labels, spec := r.Object.Labels, r.Object.Spec
			return denyIf(ofService(r.Object) && (labels[v1alpha1.LabelSourceName] != spec.Name || labels[v1alpha1.LabelSourceNamespace] != spec.Namespace),
				"labels sourceNamespace and sourceName are not spec.namespace and spec.name")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-17", Severity: rule.Refuse, Title: "The name follows from what is exported",
			Why:    "A free name could take the place of another member's export before that is written.",
			Remedy: "name it as the member controller does",
			Source: "webhooks and names of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, o ExportObserved) ruling {
			name := exportName(o.bound(), r.Object.Spec)
			return denyIf(name == "" || r.Object.Name != name, "its name does not follow from what it exports")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-18", Severity: rule.Refuse, Title: "A network is told by its own cluster",
			Why:    "Traffic for a cluster goes where its ClusterInfo says.",
			Remedy: "set spec.clusterInfo.clusterID to the cluster ID of the member token",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, o ExportObserved) ruling {
			spec := r.Object.Spec
			return denyIf(spec.Kind == v1alpha1.KindClusterInfo && spec.ClusterInfo != nil && spec.ClusterInfo.ClusterID != o.bound(),
				"spec.clusterInfo.clusterID is not that of the caller's credential")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-19", Severity: rule.Refuse, Title: "A new export has the leader's finalizer",
			Why:    "The finalizer lets the leader take the import away with the export.",
			Remedy: "add the finalizer " + v1alpha1.FinalizerExport,
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, _ ExportObserved) ruling {
			return denyIf(r.creates() && r.Object.Spec.Kind != v1alpha1.KindLabelIdentity && !finalized(r.Object), "the leader's finalizer is missing")
		},
	},
}

// exportName is what the wire calls an export of a cluster; empty when that
// cannot be told.
func exportName(cluster string, spec v1alpha1.ResourceExportSpec) string {
	service := types.NamespacedName{Namespace: spec.Namespace, Name: spec.Name}
	switch {
	case spec.Kind == v1alpha1.KindService:
		return identity.ServiceExportName(cluster, service)
	case spec.Kind == v1alpha1.KindEndpoints:
		return identity.EndpointsExportName(cluster, service)
	case spec.Kind == v1alpha1.KindClusterInfo:
		return identity.ClusterInfoName(cluster)
	case spec.Kind == v1alpha1.KindLabelIdentity && spec.LabelIdentity != nil:
		return identity.LabelIdentityExportName(cluster, spec.LabelIdentity.NormalizedLabel)
	}
	return ""
}

func isLabel(text string) bool { return len(validation.IsDNS1123Label(text)) == 0 }
