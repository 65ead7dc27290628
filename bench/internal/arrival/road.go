package arrival

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
)

// The points of the road. Import and Slice are where it ends: what a client in
// the importing cluster needs.
const (
	Export  Point = "ServiceExport seen in the exporting cluster"
	Facts   Point = "ResourceExport in the common area"
	Offered Point = "EndpointSlice in the common area"
	Merged  Point = "ResourceImport in the common area"
	Service Point = "Service in the importing cluster"
	Slice   Point = "EndpointSlice with a ready endpoint in the importing cluster"
	Import  Point = "ServiceImport with an IP in the importing cluster"
	Told    Point = "ServiceExport Ready in the exporting cluster"
)

// The points of the way back.
const (
	NoImport  Point = "ServiceImport gone from the importing cluster"
	NoSlice   Point = "EndpointSlice gone from the importing cluster"
	NoService Point = "Service gone from the importing cluster"
)

// End watches only for the end of the road, in one cluster.
func End(in *stage.Cluster) []Interest {
	return []Interest{
		{in, stage.Namespace, &mcsv1beta1.ServiceImportList{}, readImport, NoImport},
		{in, stage.Namespace, &discoveryv1.EndpointSliceList{}, readSlice, NoSlice},
	}
}

// Road watches the whole road.
func Road(s *stage.Stage) []Interest {
	return append(End(s.West),
		Services(s.West),
		Interest{s.Leader, stage.Area, &v1alpha1.ResourceExportList{}, readFacts, ""},
		Interest{s.Leader, stage.Area, &v1alpha1.ResourceImportList{}, readMerged, ""},
		Interest{s.Leader, stage.Area, &discoveryv1.EndpointSliceList{}, readOffered, ""},
		Interest{s.East, stage.Namespace, &mcsv1beta1.ServiceExportList{}, readExport, ""},
	)
}

// Services watches for the Services that stand for imports.
func Services(in *stage.Cluster) Interest {
	return Interest{in, stage.Namespace, &corev1.ServiceList{}, readService, NoService}
}

func readImport(object runtime.Object) (string, Point) {
	imported := object.(*mcsv1beta1.ServiceImport)
	if len(imported.Spec.IPs) == 0 {
		return "", ""
	}
	return imported.Name, Import
}

func readSlice(object runtime.Object) (string, Point) {
	slice := object.(*discoveryv1.EndpointSlice)
	// The exported Service's own slices lack the label.
	if slice.Labels[v1alpha1.LabelClusterSet] == "" || Ready(slice) == 0 {
		return "", ""
	}
	return slice.Labels[mcsv1beta1.LabelServiceName], Slice
}

// Ready counts the ready endpoints of a slice.
func Ready(slice *discoveryv1.EndpointSlice) (n int) {
	for _, endpoint := range slice.Endpoints {
		if ptr.Deref(endpoint.Conditions.Ready, true) {
			n++
		}
	}
	return n
}

func readService(object runtime.Object) (string, Point) {
	labels := object.(*corev1.Service).Labels
	if labels[v1alpha1.LabelClusterSet] == "" {
		return "", ""
	}
	return labels[mcsv1beta1.LabelServiceName], Service
}

func readFacts(object runtime.Object) (string, Point) {
	spec := object.(*v1alpha1.ResourceExport).Spec
	if spec.Kind != v1alpha1.KindService {
		return "", ""
	}
	return spec.Name, Facts
}

func readMerged(object runtime.Object) (string, Point) {
	spec := object.(*v1alpha1.ResourceImport).Spec
	if spec.Kind != v1alpha1.KindServiceImport {
		return "", ""
	}
	return spec.Name, Merged
}

func readOffered(object runtime.Object) (string, Point) {
	return object.(*discoveryv1.EndpointSlice).Labels[mcsv1beta1.LabelServiceName], Offered
}

func readExport(object runtime.Object) (string, Point) {
	export := object.(*mcsv1beta1.ServiceExport)
	if meta.IsStatusConditionTrue(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionReady)) {
		return export.Name, Told
	}
	return export.Name, Export
}
