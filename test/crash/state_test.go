package crash_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// state is every object that the controllers write or read, as text without what
// differs between two runs of one story.
type state map[string]string

// kinds that are compared.
var kinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind("ResourceExport"),
	v1alpha1.GroupVersion.WithKind("ResourceImport"),
	v1alpha1.GroupVersion.WithKind("MemberClusterAnnounce"),
	v1alpha1.GroupVersion.WithKind("Gateway"),
	v1alpha1.GroupVersion.WithKind("ClusterInfoImport"),
	v1alpha2.GroupVersion.WithKind("ClusterSet"),
	mcsv1beta1.SchemeGroupVersion.WithKind("ServiceExport"),
	mcsv1beta1.SchemeGroupVersion.WithKind("ServiceImport"),
	corev1.SchemeGroupVersion.WithKind("Service"),
	discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
}

// kindsOf are those of them that a cluster serves: a member that is not the leader
// as well has none of the common area. To ask for such a kind again and again
// would make the client look for it each time.
func kindsOf(t *testing.T, c *fleet.Cluster) (served []schema.GroupVersionKind) {
	t.Helper()
	for _, kind := range kinds {
		_, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case err == nil:
			served = append(served, kind)
		case !meta.IsNoMatchError(err):
			t.Fatal(err)
		}
	}
	return served
}

// read collects the objects of some kinds and Namespaces of a cluster.
func (s state) read(t *testing.T, c *fleet.Cluster, kinds []schema.GroupVersionKind, namespaces ...string) error {
	var objects []unstructured.Unstructured
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(t.Context(), list); err != nil {
			return err
		}
		for _, object := range list.Items {
			if slices.Contains(namespaces, object.GetNamespace()) {
				objects = append(objects, object)
			}
		}
	}
	for i := range objects {
		object := &objects[i]
		text, err := plain(object)
		if err != nil {
			return err
		}
		s[fmt.Sprintf("%s/%s/%s/%s", c.Name, object.GetKind(), object.GetNamespace(), object.GetName())] = text
	}
	return nil
}

// name the addresses that API servers chose, the same in every cluster's objects.
func (s state) nameAddresses(names map[string]string) {
	for key, text := range s {
		for address, name := range names {
			text = strings.ReplaceAll(text, `"`+address+`"`, `"`+name+`"`)
		}
		s[key] = text
	}
}

// serviceIPs are the addresses of the Services of a Namespace, by what to call them.
func serviceIPs(t *testing.T, c *fleet.Cluster, namespace string, names map[string]string) error {
	var services corev1.ServiceList
	if err := c.List(t.Context(), &services, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, service := range services.Items {
		if address, err := netip.ParseAddr(service.Spec.ClusterIP); err == nil {
			names[address.String()] = "IP of " + c.Name + "/" + service.Name
		}
	}
	return nil
}

// plain is one object as text.
func plain(object *unstructured.Unstructured) (string, error) {
	generation := object.GetGeneration()
	held := clusterset.ReadMemory(object.GetAnnotations()).HoldSince != nil
	object.SetManagedFields(nil)
	object.SetGeneration(0)
	annotations := object.GetAnnotations()
	if _, ok := annotations[v1alpha1.AnnotationLeaderSeen]; ok {
		annotations[v1alpha1.AnnotationLeaderSeen] = fmt.Sprintf("held: %v", held)
	}
	// A touch is absent only until the second heartbeat.
	delete(annotations, v1alpha1.AnnotationTouch)
	object.SetAnnotations(annotations)
	text, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		return "", err
	}
	current := fmt.Sprintf(`"observedGeneration": %d`, generation)
	return fleet.WithoutTicks(strings.ReplaceAll(string(text), current, `"observedGeneration": "current"`)), nil
}
