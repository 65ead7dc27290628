package remote

import (
	"context"
	"errors"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

const (
	indexTuple     = "tuple"
	indexImported  = "importedService"
	indexNamespace = "namespace"
	indexNamed     = "named"
	indexKind      = "kind"
)

// Export is this member's ResourceExport of that name; nil when there is none.
func (a *Area) Export(ctx context.Context, name string) (*v1alpha1.ResourceExport, error) {
	export := &v1alpha1.ResourceExport{}
	err := a.facts.cache.Get(ctx, types.NamespacedName{Namespace: a.Namespace, Name: name}, export)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return export, nil
}

// Exports are all ResourceExports of this member.
func (a *Area) Exports(ctx context.Context) ([]v1alpha1.ResourceExport, error) {
	var list v1alpha1.ResourceExportList
	err := a.facts.cache.List(ctx, &list, client.InNamespace(a.Namespace))
	return list.Items, err
}

// Imports are the ResourceImports of one tuple; an importer goes by the tuple,
// never by the name.
func (a *Area) Imports(ctx context.Context, tuple types.NamespacedName) ([]v1alpha1.ResourceImport, error) {
	return a.imports(ctx, client.MatchingFields{indexTuple: tuple.String()})
}

// ImportsInto are the ResourceImports whose Services belong in a Namespace.
func (a *Area) ImportsInto(ctx context.Context, namespace string) ([]v1alpha1.ResourceImport, error) {
	return a.imports(ctx, client.MatchingFields{indexNamespace: namespace})
}

// ImportsAs are the ResourceImports whose local Service has that name.
func (a *Area) ImportsAs(ctx context.Context, service types.NamespacedName) ([]v1alpha1.ResourceImport, error) {
	return a.imports(ctx, client.MatchingFields{indexImported: service.String()})
}

// ImportsOf are the ResourceImports of a kind.
func (a *Area) ImportsOf(ctx context.Context, kind string) ([]v1alpha1.ResourceImport, error) {
	return a.imports(ctx, client.MatchingFields{indexKind: kind})
}

// AllImports are all ResourceImports of the common area.
func (a *Area) AllImports(ctx context.Context) ([]v1alpha1.ResourceImport, error) {
	return a.imports(ctx)
}

func (a *Area) imports(ctx context.Context, options ...client.ListOption) ([]v1alpha1.ResourceImport, error) {
	var list v1alpha1.ResourceImportList
	err := a.facts.cache.List(ctx, &list, append(options, client.InNamespace(a.Namespace))...)
	return list.Items, err
}

// Loss is what the leader says of members that it does not hear.
func (a *Area) Loss(ctx context.Context) (v1alpha1.MemberLoss, error) {
	told := &v1alpha1.ResourceImport{}
	err := a.facts.cache.Get(ctx, types.NamespacedName{Namespace: a.Namespace, Name: v1alpha1.MemberLossImport}, told)
	if err != nil {
		return v1alpha1.MemberLoss{}, client.IgnoreNotFound(err)
	}
	return clusterset.ReadLoss(told), nil
}

// Announce is this member's announce as last seen; nil when there is none.
func (a *Area) Announce(ctx context.Context) (*v1alpha1.MemberClusterAnnounce, error) {
	announce := &v1alpha1.MemberClusterAnnounce{}
	err := a.facts.cache.Get(ctx, types.NamespacedName{Namespace: a.Namespace, Name: identity.AnnounceName(a.ClusterID)}, announce)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return announce, nil
}

// InTheWayOf is the cluster and the Service that a slice of the common area has
// its name from, when its labels say otherwise.
func InTheWayOf(slice client.Object) (cluster string, tuple types.NamespacedName, ok bool) {
	cluster, tuple, ok = identity.SliceOwner(slice.GetName())
	labelled, _ := services.TupleOf(slice)
	return cluster, tuple, ok && (labelled != tuple || slice.GetLabels()[mcsv1beta1.LabelSourceCluster] != cluster)
}

func namedKey(cluster string, tuple types.NamespacedName) string {
	return cluster + "/" + tuple.String()
}

func (a *Area) index(ctx context.Context) error {
	imports := func(value func(v1alpha1.ResourceImportSpec) string) client.IndexerFunc {
		return func(object client.Object) []string {
			return []string{value(object.(*v1alpha1.ResourceImport).Spec)}
		}
	}
	bySpec := map[string]func(v1alpha1.ResourceImportSpec) string{
		indexTuple: func(s v1alpha1.ResourceImportSpec) string { return s.Namespace + "/" + s.Name },
		indexImported: func(s v1alpha1.ResourceImportSpec) string {
			return s.Namespace + "/" + identity.ImportedServiceName(s.Name)
		},
		indexNamespace: func(s v1alpha1.ResourceImportSpec) string { return s.Namespace },
		indexKind:      func(s v1alpha1.ResourceImportSpec) string { return s.Kind },
	}
	for name, value := range bySpec {
		if err := a.facts.cache.IndexField(ctx, &v1alpha1.ResourceImport{}, name, imports(value)); err != nil {
			return err
		}
	}
	slices := func(owner func(client.Object) (string, bool)) client.IndexerFunc {
		return func(object client.Object) []string {
			if key, ok := owner(object); ok {
				return []string{key}
			}
			return nil
		}
	}
	return errors.Join(
		a.slices.cache.IndexField(ctx, &discoveryv1.EndpointSlice{}, indexTuple, slices(func(object client.Object) (string, bool) {
			tuple, ok := services.TupleOf(object)
			return tuple.String(), ok
		})),
		a.slices.cache.IndexField(ctx, &discoveryv1.EndpointSlice{}, indexNamed, slices(func(object client.Object) (string, bool) {
			cluster, tuple, ok := InTheWayOf(object)
			return namedKey(cluster, tuple), ok
		})),
	)
}
