// Package scheme knows every kind that Lockstep reads or writes.
package scheme

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	fleetv1alpha1 "github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
)

// New returns a scheme of its own, so that nobody shares registrations.
func New() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	utilruntime.Must(mcsv1alpha1.Install(s))
	utilruntime.Must(mcsv1beta1.Install(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	utilruntime.Must(v1alpha2.AddToScheme(s))
	utilruntime.Must(fleetv1alpha1.AddToScheme(s))
	return s
}

// AreaMapper maps the kinds of a common area to their resources without asking
// the API server: a member must be able to prepare its connection while the
// leader is away, and has no need of discovery for kinds that are on the wire.
func AreaMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion, discoveryv1.SchemeGroupVersion, corev1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion})
	for _, kind := range []schema.GroupVersionKind{
		v1alpha1.GroupVersion.WithKind("MemberClusterAnnounce"),
		v1alpha1.GroupVersion.WithKind("ResourceExport"),
		v1alpha1.GroupVersion.WithKind("ResourceImport"),
		discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
		corev1.SchemeGroupVersion.WithKind("Event"),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"),
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
		// Caches of several Namespaces ask for the scope of list kinds as well.
		mapper.Add(kind.GroupVersion().WithKind(kind.Kind+"List"), meta.RESTScopeNamespace)
	}
	return mapper
}
