package fleet

import (
	"context"
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// Wire is what the common area holds of one Service.
type Wire struct {
	Services, Endpoints     map[string]*v1alpha1.ResourceExport // by cluster ID
	Import, EndpointsImport *v1alpha1.ResourceImport            // at their computed names, nil when there is none
	Slices                  map[string][]discoveryv1.EndpointSlice
}

// Wire reads what the common area holds of a Service.
func (f *Fleet) Wire(ctx context.Context, namespace, name string) (Wire, error) {
	seen := Wire{
		Services: map[string]*v1alpha1.ResourceExport{}, Endpoints: map[string]*v1alpha1.ResourceExport{},
		Slices: map[string][]discoveryv1.EndpointSlice{},
	}
	tuple := types.NamespacedName{Namespace: namespace, Name: name}
	var exports v1alpha1.ResourceExportList
	if err := f.Leader.List(ctx, &exports, client.InNamespace(f.Area)); err != nil {
		return seen, err
	}
	for i := range exports.Items {
		export := &exports.Items[i]
		if export.Spec.Namespace != namespace || export.Spec.Name != name {
			continue
		}
		switch export.Spec.Kind {
		case v1alpha1.KindService:
			seen.Services[export.Spec.ClusterID] = export
		case v1alpha1.KindEndpoints:
			seen.Endpoints[export.Spec.ClusterID] = export
		}
	}
	var slices discoveryv1.EndpointSliceList
	labels := client.MatchingLabels{v1alpha1.LabelServiceNamespace: namespace, mcsv1beta1.LabelServiceName: name}
	if err := f.Leader.List(ctx, &slices, client.InNamespace(f.Area), labels); err != nil {
		return seen, err
	}
	for _, slice := range slices.Items {
		source := slice.Labels[mcsv1beta1.LabelSourceCluster]
		seen.Slices[source] = append(seen.Slices[source], slice)
	}
	var err error
	if seen.Import, err = f.resourceImport(ctx, identity.ServiceImportName(tuple)); err != nil {
		return seen, err
	}
	seen.EndpointsImport, err = f.resourceImport(ctx, identity.EndpointsImportName(tuple))
	return seen, err
}

func (f *Fleet) resourceImport(ctx context.Context, name string) (*v1alpha1.ResourceImport, error) {
	found := &v1alpha1.ResourceImport{}
	err := f.Leader.Get(ctx, types.NamespacedName{Namespace: f.Area, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// AwaitWire waits until the common area shows a Service as check wants it.
func (f *Fleet) AwaitWire(t testing.TB, what, namespace, name string, check func(Wire) error) Wire {
	t.Helper()
	var seen Wire
	Eventually(t, fmt.Sprintf("%s: %s/%s in the common area", what, namespace, name), func() (err error) {
		if seen, err = f.Wire(t.Context(), namespace, name); err != nil {
			return err
		}
		return check(seen)
	})
	return seen
}

// Addresses are those of the wire's Endpoints, in the order they are in.
func Addresses(export *v1alpha1.ResourceExport) []string {
	if export == nil || export.Spec.Endpoints == nil {
		return nil
	}
	var addresses []string
	for _, subset := range export.Spec.Endpoints.Subsets {
		for _, address := range subset.Addresses {
			addresses = append(addresses, address.IP)
		}
	}
	return addresses
}

// Merged tells whether the leader took an export, in the wire's terms.
func Merged(export *v1alpha1.ResourceExport) error {
	switch {
	case export == nil:
		return fmt.Errorf("there is no such export")
	case len(export.Status.Conditions) == 0:
		return fmt.Errorf("export %q has no status yet", export.Name)
	case export.Status.Conditions[0].Type != v1alpha1.ResourceSucceeded || export.Status.Conditions[0].Status != "True":
		return fmt.Errorf("export %q is not merged: %+v", export.Name, export.Status.Conditions[0])
	}
	return nil
}

// Refused tells whether the leader refused an export, in the wire's terms.
func Refused(export *v1alpha1.ResourceExport) error {
	switch {
	case export == nil:
		return fmt.Errorf("there is no such export")
	case len(export.Status.Conditions) == 0:
		return fmt.Errorf("export %q has no status yet", export.Name)
	}
	if c := export.Status.Conditions[0]; c.Type != v1alpha1.ResourceFailure || c.Status != "False" || c.Reason != v1alpha1.ReasonConvergeFailure {
		return fmt.Errorf("export %q is not refused: %+v", export.Name, c)
	}
	return nil
}
