package services

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// ReasonImportedService is our reason of Valid=False for a Service that an
// importer made: exporting it again would send traffic in circles.
const ReasonImportedService mcsv1beta1.ServiceExportConditionReason = "ImportedService"

// verdict tells whether the Service of a ServiceExport can be exported.
type verdict struct {
	exportable bool
	reason     mcsv1beta1.ServiceExportConditionReason
	message    string
}

// judge follows the decision list MEM-SE-2 with the reasons of the MCS API. Its
// rows on readiness are gone knowingly: a Service without ready endpoints, or
// without an IPv4 address, is exported all the same.
func judge(o ExportObserved) verdict {
	switch {
	case o.Export == nil || o.Export.DeletionTimestamp != nil:
		return verdict{}
	case o.Service == nil:
		return verdict{reason: mcsv1beta1.ServiceExportReasonNoService, message: "Service does not exist"}
	case o.Service.Spec.Type == corev1.ServiceTypeExternalName:
		return verdict{
			reason:  mcsv1beta1.ServiceExportReasonInvalidServiceType,
			message: "Service is of type ExternalName, which has no endpoints to share; export a Service of another type",
		}
	case madeByImporter(o.Service):
		return verdict{
			reason:  ReasonImportedService,
			message: "Service is itself imported from other clusters; export it in the cluster where its Pods run",
		}
	}
	return verdict{exportable: true, reason: mcsv1beta1.ServiceExportReasonValid, message: "Service can be exported"}
}

// madeByImporter: upstream's importer looks for the presence of the annotation,
// whatever its value.
func madeByImporter(service *corev1.Service) bool {
	_, ok := service.Annotations[v1alpha1.AnnotationImportedService]
	return ok
}

// conditions wants Valid, Ready and, for a valid export, Conflict.
func (o ExportObserved) conditions(v verdict) []metav1.Condition {
	if o.Export == nil || o.Export.DeletionTimestamp != nil {
		return nil
	}
	conditions := []metav1.Condition{
		o.condition(mcsv1beta1.ServiceExportConditionValid, status(v.exportable), string(v.reason), v.message),
		o.ready(v),
	}
	if v.exportable && !o.Left {
		conditions = append(conditions, o.conflict())
	}
	return conditions
}

func (o ExportObserved) condition(t mcsv1beta1.ServiceExportConditionType, s metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: string(t), Status: s, ObservedGeneration: o.Export.Generation, Reason: reason, Message: message}
}

func status(yes bool) metav1.ConditionStatus {
	if yes {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// ready reports whether the leader took the export (WK-6). While the leader
// cannot be reached, what was last told stands; without that it is unknown
// rather than false.
func (o ExportObserved) ready(v verdict) metav1.Condition {
	state, reason, message := metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonPending, ""
	last := o.lastReady()
	switch in := o.inTheWay(); {
	case !v.exportable:
		message = "Service is not exported: condition Valid says why"
	case o.Left:
		state, message = metav1.ConditionUnknown, "this cluster belongs to no ClusterSet"
	case !o.Connected && last != nil:
		return *last
	case !o.Connected:
		state, message = metav1.ConditionUnknown, "this cluster is not connected to the leader"
	case in != nil:
		reason, message = mcsv1beta1.ServiceExportReasonFailed, o.collision(in)
	case o.Published.Service == nil || o.Published.Service.DeletionTimestamp != nil:
		message = "the export is not in the common area yet"
	default:
		state, reason, message = leaderVerdict(o.Published.Service.Status.Conditions)
	}
	return o.condition(mcsv1beta1.ServiceExportConditionReady, state, string(reason), message)
}

// lastReady is what was told of the export as it is, or nil. It stands while
// the leader cannot be asked: every start of a controller begins that way, and
// to take back and repeat a word on each export would be four writes for each.
// What was told of an export that could not be exported does not stand.
func (o ExportObserved) lastReady() *metav1.Condition {
	conditions := o.Export.Status.Conditions
	last := meta.FindStatusCondition(conditions, string(mcsv1beta1.ServiceExportConditionReady))
	if last == nil || last.ObservedGeneration != o.Export.Generation ||
		!meta.IsStatusConditionTrue(conditions, string(mcsv1beta1.ServiceExportConditionValid)) {
		return nil
	}
	return last
}

// leaderVerdict reads the wire's first element; a peer looks at its status only.
func leaderVerdict(conditions []v1alpha1.ResourceCondition) (metav1.ConditionStatus, mcsv1beta1.ServiceExportConditionReason, string) {
	switch {
	case len(conditions) == 0:
		return metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonPending, "the leader has not merged the export yet"
	case conditions[0].Status == corev1.ConditionTrue:
		return metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported, "the leader merged the export"
	case conditions[0].Message == "":
		return metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonFailed, "the leader refused the export and does not say why"
	}
	return metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonFailed, conditions[0].Message
}

// inTheWay is an export of another tuple or cluster under a name this one
// needs, or nil.
func (o ExportObserved) inTheWay() *v1alpha1.ResourceExport {
	if re := o.Published.Service; re != nil && !o.owns(re, v1alpha1.KindService) {
		return re
	}
	if re := o.Published.Endpoints; o.Exchange.Wire() && re != nil && !o.owns(re, v1alpha1.KindEndpoints) {
		return re
	}
	return nil
}

// collision names both Services (MEM-SE-6).
func (o ExportObserved) collision(in *v1alpha1.ResourceExport) string {
	return fmt.Sprintf("Service %q of cluster %q cannot be exported: its name %q in the common area already stands for %s %q of cluster %q; "+
		"rename one of the two (MEM-SE-6)", o.Tuple, o.Cluster, in.Name, in.Spec.Kind, exportedTuple(in), in.Spec.ClusterID)
}

// conflict passes on what the leader found. As long as the leader has not
// spoken, what was last known stands.
func (o ExportObserved) conflict() metav1.Condition {
	const t = mcsv1beta1.ServiceExportConditionConflict
	if o.Connected && o.Published.Service != nil && o.owns(o.Published.Service, v1alpha1.KindService) {
		for _, c := range o.Published.Service.Status.Conditions {
			if c.Type == v1alpha1.ResourceConflict {
				return o.condition(t, metav1.ConditionStatus(c.Status), c.Reason, c.Message)
			}
		}
		if len(o.Published.Service.Status.Conditions) > 0 {
			return o.noConflicts()
		}
	}
	for _, c := range o.Export.Status.Conditions {
		if c.Type == string(t) {
			return o.condition(t, c.Status, c.Reason, c.Message)
		}
	}
	return o.noConflicts()
}

func (o ExportObserved) noConflicts() metav1.Condition {
	return o.condition(mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionFalse,
		string(mcsv1beta1.ServiceExportReasonNoConflicts), "no conflict with exports of other clusters")
}

// owns tells whether an export in the common area is this cluster's for this
// tuple, whatever its name.
func (o ExportObserved) owns(re *v1alpha1.ResourceExport, kind string) bool {
	return re.Spec.ClusterID == o.Cluster && re.Spec.Kind == kind &&
		re.Spec.Namespace == o.Tuple.Namespace && re.Spec.Name == o.Tuple.Name
}

// exportName is the wire's name of an export of this tuple.
func (o ExportObserved) exportName(kind string) string {
	if kind == v1alpha1.KindEndpoints {
		return identity.EndpointsExportName(o.Cluster, o.Tuple)
	}
	return identity.ServiceExportName(o.Cluster, o.Tuple)
}
