package services

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

const (
	// AnnotationDerivedService on a ServiceImport names the Service behind it.
	// The reference controller of the MCS API writes it and Cilium reads it.
	AnnotationDerivedService = "multicluster.kubernetes.io/derived-service"
	// AnnotationExportedKeys on a ServiceImport lists the keys that came with
	// the export (exportedKeys as JSON), so that they can go with it again and
	// labels of others stay.
	AnnotationExportedKeys = "multicluster.lockstep.dev/exported-keys"
)

type exportedKeys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// serviceImport is the change of the ServiceImport at the tuple's name.
func (i importer) serviceImport() Change[mcsv1beta1.ServiceImport] {
	desired := &mcsv1beta1.ServiceImport{}
	if i.ServiceImport != nil {
		*desired = *i.ServiceImport
	}
	desired.Namespace, desired.Name = i.Tuple.Namespace, i.Tuple.Name
	i.putExportedKeys(desired)
	setLabels(desired, map[string]string{v1alpha1.LabelClusterSet: i.ClusterSet})
	desired.Spec = i.spec
	if len(i.families) == 0 {
		setAnnotation(desired, AnnotationDerivedService, "")
		return diff(i.ServiceImport, desired)
	}
	setAnnotation(desired, AnnotationDerivedService, i.name)
	desired.Spec.IPFamilies = i.families
	if i.spec.Type != mcsv1beta1.Headless {
		desired.Spec.IPs = i.importedIPs()
		desired.Spec.IPFamilies = familiesOf(desired.Spec.IPs) // one to one
	}
	return diff(i.ServiceImport, desired)
}

// putExportedKeys replaces what came with the export before by what comes with
// it now. Pairs that the API refuses are left out: they were written in another
// cluster, and must not cost this one the import.
func (i importer) putExportedKeys(si *mcsv1beta1.ServiceImport) {
	var before exportedKeys
	if json.Unmarshal([]byte(si.Annotations[AnnotationExportedKeys]), &before) != nil {
		before = exportedKeys{}
	}
	labels, annotations := validLabels(i.facts.Labels), validAnnotations(i.facts.Annotations)
	si.Labels = with(without(si.Labels, before.Labels), labels)
	si.Annotations = with(without(si.Annotations, before.Annotations), annotations)
	now := exportedKeys{Labels: slices.Sorted(maps.Keys(labels)), Annotations: slices.Sorted(maps.Keys(annotations))}
	record := ""
	if len(now.Labels)+len(now.Annotations) > 0 {
		record = encode(now)
	}
	setAnnotation(si, AnnotationExportedKeys, record)
}

// validLabels also leaves out our own mark, which no export may set.
func validLabels(labels map[string]string) map[string]string {
	valid := maps.Clone(labels)
	maps.DeleteFunc(valid, func(k, v string) bool {
		return len(content.IsLabelKey(k)) > 0 || len(content.IsLabelValue(v)) > 0 || k == v1alpha1.LabelClusterSet
	})
	return valid
}

func validAnnotations(annotations map[string]string) map[string]string {
	valid := maps.Clone(annotations)
	maps.DeleteFunc(valid, func(k, _ string) bool {
		return len(content.IsLabelKey(k)) > 0 || k == AnnotationDerivedService || k == AnnotationExportedKeys
	})
	return valid
}

// without is a new map that lacks the keys.
func without(m map[string]string, keys []string) map[string]string {
	rest := maps.Clone(m)
	maps.DeleteFunc(rest, func(k, _ string) bool { return slices.Contains(keys, k) })
	return rest
}

func familiesOf(ips []string) []corev1.IPFamily {
	var families []corev1.IPFamily
	for _, ip := range ips {
		t, _, _ := addressType(ip)
		families = append(families, familyOf(t))
	}
	return families
}

// status names the clusters behind the import, and those a hold keeps there.
func (i importer) status(s localSlices, ready metav1.Condition) *mcsv1beta1.ServiceImportStatus {
	clusters := map[string]bool{}
	for _, c := range i.accepted {
		clusters[c] = true
	}
	if i.accepted == nil { // upstream's leader does not say: those we see
		maps.Copy(clusters, s.sources)
	}
	if i.ServiceImport != nil && i.ownsServiceImport() {
		for _, c := range i.ServiceImport.Status.Clusters {
			if i.Hold.holds(c.Cluster) {
				clusters[c.Cluster] = true
			}
		}
	}
	maps.Copy(clusters, s.held)
	delete(clusters, "")
	status := &mcsv1beta1.ServiceImportStatus{
		EndpointSliceObjects: mcsv1beta1.EndpointSliceObjectsAbsent,
		Clusters:             clusterStatuses(slices.Sorted(maps.Keys(clusters))),
		Conditions:           []metav1.Condition{ready},
	}
	if len(s.sources) > 0 {
		status.EndpointSliceObjects = mcsv1beta1.EndpointSliceObjectsPresent
	}
	return status
}

// pending says that the import waits for its Service. Nothing else of the
// status moves meanwhile.
func (i importer) pending() *mcsv1beta1.ServiceImportStatus {
	if i.ServiceImport == nil || !i.ownsServiceImport() {
		return nil
	}
	status := i.ServiceImport.Status.DeepCopy()
	status.Conditions = []metav1.Condition{importReady(metav1.ConditionFalse, mcsv1beta1.ServiceImportReasonPending,
		fmt.Sprintf("Service %q, which stands for the import in this cluster, is being made", i.name))}
	return status
}

func ready() metav1.Condition {
	return importReady(metav1.ConditionTrue, mcsv1beta1.ServiceImportReasonReady, "the Service is imported")
}

func familyNotSupported(wanted, supported []corev1.IPFamily) metav1.Condition {
	return importReady(metav1.ConditionFalse, mcsv1beta1.ServiceImportReasonIPFamilyNotSupported,
		fmt.Sprintf("the Service has %s only and this cluster has %s", joinFamilies(wanted), joinFamilies(supported)))
}

func importReady(status metav1.ConditionStatus, reason mcsv1beta1.ServiceImportConditionReason, message string) metav1.Condition {
	return metav1.Condition{Type: string(mcsv1beta1.ServiceImportConditionReady), Status: status, Reason: string(reason), Message: message}
}
