package evidence

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// annotationImportedPolicy marks a policy that an importer made.
const annotationImportedPolicy = "multicluster.antrea.io/imported-acnp"

// exported is a ServiceExport with what it is about.
type exported struct {
	export  mcsv1beta1.ServiceExport
	service *corev1.Service
	slices  []discoveryv1.EndpointSlice
}

// services reads what a member exports and what it imported.
func (r *reading) services(m *memberRead) {
	all, unread := list[corev1.Service](r.ctx, r.client, &corev1.ServiceList{})
	m.exported = known(r.exported(all, unread))
	m.Imported = known(r.imported(all, unread))
}

var kindServiceExport = schema.GroupKind{Group: mcsv1beta1.GroupName, Kind: "ServiceExport"}

func (r *reading) exported(all []corev1.Service, unread error) ([]exported, error) {
	exports, err := versions[mcsv1beta1.ServiceExport](r.ctx, r.client, kindServiceExport, []string{"v1beta1", "v1alpha1"})
	if meta.IsNoMatchError(err) || err == nil && len(exports) == 0 {
		return nil, nil
	}
	if err == nil {
		err = unread
	}
	if err != nil {
		return nil, err
	}
	slices, err := r.slices(exports)
	if err != nil {
		return nil, err
	}
	of := map[types.NamespacedName]*corev1.Service{}
	for i := range all {
		of[client.ObjectKeyFromObject(&all[i])] = &all[i]
	}
	found := make([]exported, len(exports))
	for i := range exports {
		key := client.ObjectKeyFromObject(&exports[i])
		found[i] = exported{exports[i], of[key], slices[key]}
	}
	return found, nil
}

// fewNamespaces are read one by one; of more all is read at once, since one long
// list costs less than many short ones.
const fewNamespaces = 4

// slices are the EndpointSlices of exported Services, by Service.
func (r *reading) slices(exports []mcsv1beta1.ServiceExport) (map[types.NamespacedName][]discoveryv1.EndpointSlice, error) {
	in := map[string]bool{}
	for i := range exports {
		in[exports[i].Namespace] = true
	}
	if len(in) > fewNamespaces {
		in = map[string]bool{"": true}
	}
	of := map[types.NamespacedName][]discoveryv1.EndpointSlice{}
	for namespace := range in {
		found, err := list[discoveryv1.EndpointSlice](r.ctx, r.client, &discoveryv1.EndpointSliceList{},
			client.InNamespace(namespace), client.HasLabels{discoveryv1.LabelServiceName})
		if err != nil {
			return nil, err
		}
		for i := range found {
			key := types.NamespacedName{Namespace: found[i].Namespace, Name: found[i].Labels[discoveryv1.LabelServiceName]}
			of[key] = append(of[key], found[i])
		}
	}
	return of, nil
}

// imported are the objects of importers. What carries the mark of another
// ClusterSet is that one's.
func (r *reading) imported(all []corev1.Service, unread error) ([]preflight.Imported, error) {
	if unread != nil {
		return nil, unread
	}
	var found []preflight.Imported
	for i := range all {
		if _, marked := all[i].Annotations[v1alpha1.AnnotationImportedService]; marked {
			found = append(found, preflight.Imported{Kind: "Service", NamespacedName: client.ObjectKeyFromObject(&all[i]), ClusterSet: all[i].Labels[v1alpha1.LabelClusterSet]})
		}
	}
	policies, err := orNone(listAny(r.ctx, r.client, antrea.WithKind("ClusterNetworkPolicy")))
	for i := range policies {
		if _, marked := policies[i].GetAnnotations()[annotationImportedPolicy]; marked {
			found = append(found, preflight.Imported{Kind: "ClusterNetworkPolicy", NamespacedName: types.NamespacedName{Name: policies[i].GetName()}})
		}
	}
	return found, err
}

// finish says what should come of each export: a peer of ours publishes slices,
// any other member the wire's Endpoints. The plan that publishes is asked.
func (m memberRead) finish(slices bool) preflight.Member {
	seen, ok := m.exported.Get()
	settings, known := m.Settings.Get()
	switch {
	case !ok && m.exported.Problem() != "":
		m.Exported = rule.Unreadable[[]preflight.Exported](m.exported.Problem())
		return m.Member
	case !known && len(seen) > 0: // where they should be reached nobody knows
		m.Exported = rule.Unreadable[[]preflight.Exported]("the mode of the exporter is not known: " + m.Settings.Problem())
		return m.Member
	}
	exchange := clusterset.ExchangeWire
	if slices {
		exchange = clusterset.ExchangeSlices
	}
	all := make([]preflight.Exported, 0, len(seen))
	for i := range seen {
		all = append(all, seen[i].finish(m.ID, exchange, settings.EndpointIPType))
	}
	m.Exported = rule.Known(all)
	return m.Member
}

func (x *exported) finish(cluster string, exchange clusterset.Exchange, mode v1alpha1.EndpointIPType) preflight.Exported {
	e := preflight.Exported{
		NamespacedName: client.ObjectKeyFromObject(&x.export),
		Valid:          meta.IsStatusConditionTrue(x.export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionValid)),
	}
	if x.service == nil {
		return e
	}
	e.Ports = x.service.Spec.Ports
	plan := services.Export(services.ExportObserved{
		Cluster: cluster, Connected: true, Exchange: exchange, Mode: mode,
		Tuple: e.NamespacedName, Export: &x.export, Service: x.service, Slices: x.slices,
	})
	e.Addresses = planned(plan)
	return e
}

// planned are the ready addresses that a plan publishes.
func planned(plan services.ExportPlan) []string {
	var all []string
	for _, change := range plan.Slices {
		if change.Desired == nil {
			continue
		}
		for _, endpoint := range change.Desired.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				all = append(all, endpoint.Addresses...)
			}
		}
	}
	if wire := plan.Endpoints.Desired; wire != nil && wire.Spec.Endpoints != nil {
		for _, subset := range wire.Spec.Endpoints.Subsets {
			for _, a := range subset.Addresses {
				all = append(all, a.IP)
			}
		}
	}
	return all
}
