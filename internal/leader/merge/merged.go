package merge

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/fabric"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Merged returns those of the clusters all of whose exports are in the imports,
// and none that was withdrawn. It asks the API server itself: who says so must
// not say it of a world that caches still show.
func (r *Reconciler) Merged(ctx context.Context, clusters []string) (map[string]bool, error) {
	all, err := r.survey(ctx)
	if err != nil {
		return nil, err
	}
	merged := map[string]bool{}
	for _, cluster := range clusters {
		merged[cluster] = !slices.ContainsFunc(all.tuplesOf(cluster).UnsortedList(), all.due) && !all.networkDue(cluster)
	}
	return merged, nil
}

// survey is the whole common area but its slices, which no merge of own members
// depends on.
type survey struct {
	area    string
	exports map[types.NamespacedName][]*v1alpha1.ResourceExport
	imports map[string]*v1alpha1.ResourceImport // by name
	// networks are the ClusterInfo exports by name.
	networks map[string]*v1alpha1.ResourceExport
	peers    map[string]bool
	wire     bool
}

func (r *Reconciler) survey(ctx context.Context) (survey, error) {
	seen := survey{
		area:     r.Namespace,
		exports:  map[types.NamespacedName][]*v1alpha1.ResourceExport{},
		imports:  map[string]*v1alpha1.ResourceImport{},
		networks: map[string]*v1alpha1.ResourceExport{},
	}
	var exports v1alpha1.ResourceExportList
	var imports v1alpha1.ResourceImportList
	for _, list := range []client.ObjectList{&exports, &imports} {
		if err := r.Uncached.List(ctx, list, client.InNamespace(r.Namespace)); err != nil {
			return seen, err
		}
	}
	for i := range exports.Items {
		if exports.Items[i].Spec.Kind == v1alpha1.KindClusterInfo {
			seen.networks[exports.Items[i].Name] = &exports.Items[i]
		}
		for _, request := range ofExport(ctx, &exports.Items[i]) {
			seen.exports[request.NamespacedName] = append(seen.exports[request.NamespacedName], &exports.Items[i])
		}
	}
	var err error
	if seen.peers, seen.wire, err = r.peers(ctx, r.Uncached); err != nil {
		return seen, err
	}
	for i := range imports.Items {
		seen.imports[imports.Items[i].Name] = &imports.Items[i]
	}
	return seen, nil
}

// tuplesOf are the Services a cluster exports, or is said to export.
func (s survey) tuplesOf(cluster string) sets.Set[types.NamespacedName] {
	tuples := sets.New[types.NamespacedName]()
	for tuple, exports := range s.exports {
		if slices.ContainsFunc(exports, func(e *v1alpha1.ResourceExport) bool { return e.Spec.ClusterID == cluster }) {
			tuples.Insert(tuple)
		}
	}
	for _, i := range s.imports {
		if i.Spec.ServiceImport == nil {
			continue
		}
		if slices.ContainsFunc(i.Spec.ServiceImport.Status.Clusters, func(c mcsv1beta1.ClusterStatus) bool { return c.Cluster == cluster }) {
			tuples.Insert(types.NamespacedName{Namespace: i.Spec.Namespace, Name: i.Spec.Name})
		}
	}
	return tuples
}

// networkDue tells whether what members are told of a cluster's network is not
// what it told last.
func (s survey) networkDue(cluster string) bool {
	name := identity.ClusterInfoName(cluster)
	plan := fabric.Merge(fabric.MergeObserved{Area: s.area, Name: name, Export: s.networks[name], Import: s.imports[name]})
	return !plan.Import.IsZero()
}

// due tells whether an import is not what its exports come to.
func (s survey) due(tuple types.NamespacedName) bool {
	seen := services.MergeObserved{Area: s.area, Tuple: tuple, Peers: s.peers, Wire: s.wire}
	for _, export := range s.exports[tuple] {
		switch export.Spec.Kind {
		case v1alpha1.KindService:
			seen.Services = append(seen.Services, export)
		case v1alpha1.KindEndpoints:
			seen.Endpoints = append(seen.Endpoints, export)
		}
	}
	seen.Import = s.imports[identity.ServiceImportName(tuple)]
	seen.EndpointsImport = s.imports[identity.EndpointsImportName(tuple)]
	seen.ImportAside = s.imports[identity.ServiceImportAside(tuple)]
	seen.EndpointsImportAside = s.imports[identity.EndpointsImportAside(tuple)]
	plan := services.Merge(seen)
	return !plan.Import.IsZero() || !plan.EndpointsImport.IsZero()
}
