package services

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// labelServiceProxyName hands a slice to the proxy it names: kube-proxy leaves
// out what carries it at all (KEP-2447). In the common area no proxy is meant.
const labelServiceProxyName = "service.kubernetes.io/service-proxy-name"

// areaLayout is that of one cluster's slices for a tuple in the common area.
// A slice is the cluster's by its labels; its name only has to be free.
func areaLayout(area, cluster string, tuple Tuple) Layout {
	return Layout{
		Max:    MaxEndpoints,
		Name:   func(n int) string { return identity.SliceName(cluster, tuple, n) },
		Number: func(name string) (int, bool) { return identity.SliceNumber(name, cluster, tuple) },
		Ours: func(s *discoveryv1.EndpointSlice) bool {
			return s.Labels[mcsv1beta1.LabelSourceCluster] == cluster && belongs(s, tuple)
		},
		Dress: func(s *discoveryv1.EndpointSlice) {
			s.Namespace = area
			setLabels(s, map[string]string{
				mcsv1beta1.LabelServiceName:    tuple.Name,
				v1alpha1.LabelServiceNamespace: tuple.Namespace,
				mcsv1beta1.LabelSourceCluster:  cluster,
				discoveryv1.LabelManagedBy:     v1alpha1.SliceManager,
				labelServiceProxyName:          v1alpha1.SliceManager,
			})
		},
	}
}

// TupleOf is the Service that a slice in the common area belongs to; not ok when
// its labels do not say.
func TupleOf(slice metav1.Object) (tuple Tuple, ok bool) {
	labels := slice.GetLabels()
	tuple = Tuple{Namespace: labels[v1alpha1.LabelServiceNamespace], Name: labels[mcsv1beta1.LabelServiceName]}
	return tuple, tuple.Namespace != "" && tuple.Name != ""
}

func belongs(s *discoveryv1.EndpointSlice, tuple Tuple) bool {
	of, ok := TupleOf(s)
	return ok && of == tuple
}
