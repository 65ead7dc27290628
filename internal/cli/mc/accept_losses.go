package mc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/policy"
)

// Loss is what an imported Service loses when the common area is accepted, or a
// policy that goes then.
type Loss struct {
	Service types.NamespacedName
	// Policy is the name of a ClusterNetworkPolicy; the rest is empty then.
	Policy string
	// Clusters that no longer export it; all of them when Whole.
	Clusters []string
	// Whole: the import itself goes.
	Whole bool
}

func (l Loss) String() string {
	if l.Policy != "" {
		return fmt.Sprintf("policy %q is withdrawn", l.Policy)
	}
	clusters := strings.Join(l.Clusters, ", ")
	if l.Whole {
		return fmt.Sprintf("%s is withdrawn (exported by %s)", l.Service, cmp.Or(clusters, "nobody"))
	}
	return fmt.Sprintf("%s loses the endpoints of %s", l.Service, clusters)
}

// acceptance compares what is imported here with what the common area has, with
// the member's own credential. A leader that cannot be reached from where the
// command runs is no reason to stop: the member can reach it.
func (o AcceptLeaderOptions) acceptance(ctx context.Context, c client.Client, set *v1alpha2.ClusterSet, memory v1alpha1.LeaderMemory) (Acceptance, error) {
	a := Acceptance{ClusterSet: set.Name, ClusterID: set.Spec.ClusterID, LeaderClusterID: leaderOf(set).ClusterID, HeldSince: memory.HoldSince.Time}
	var imports mcsv1beta1.ServiceImportList
	if err := c.List(ctx, &imports, client.MatchingLabels{v1alpha1.LabelClusterSet: set.Name}); err != nil {
		return a, err
	}
	area, err := readArea(ctx, c, set)
	a.Unread = err
	a.Losses = losses(imports.Items, area, err == nil)
	policies, err := policiesHere(ctx, c, set.Name)
	for _, name := range policies { // first: the list is cut when it is long
		if a.Unread != nil || !area.policies[name] {
			a.Losses = slices.Insert(a.Losses, 0, Loss{Policy: name})
		}
	}
	return a, err
}

// policiesHere are the imported policies; none where Antrea's kinds are not there.
func policiesHere(ctx context.Context, c client.Client, set string) (names []string, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(policy.Kind.GroupVersion().WithKind(policy.Kind.Kind + "List"))
	err = c.List(ctx, list, client.MatchingLabels{v1alpha1.LabelClusterSet: set})
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names, err
}

// area is what the common area has: the imports, and who exports each.
type area struct {
	imports   map[types.NamespacedName]bool
	exporters map[types.NamespacedName][]string
	policies  map[string]bool // by the name that they have here
}

func losses(imports []mcsv1beta1.ServiceImport, a area, compared bool) []Loss {
	var all []Loss
	for _, i := range imports {
		loss := Loss{Service: types.NamespacedName{Namespace: i.Namespace, Name: i.Name}}
		loss.Whole = !compared || !a.imports[loss.Service]
		for _, c := range i.Status.Clusters {
			if loss.Whole || !slices.Contains(a.exporters[loss.Service], c.Cluster) {
				loss.Clusters = append(loss.Clusters, c.Cluster)
			}
		}
		if loss.Whole || len(loss.Clusters) > 0 {
			all = append(all, loss)
		}
	}
	slices.SortFunc(all, func(a, b Loss) int { return cmp.Compare(a.Service.String(), b.Service.String()) })
	return all
}

func readArea(ctx context.Context, c client.Client, set *v1alpha2.ClusterSet) (area, error) {
	leader, err := leaderClient(ctx, c, set)
	if err != nil {
		return area{}, err
	}
	var imports v1alpha1.ResourceImportList
	var exports v1alpha1.ResourceExportList
	for _, list := range []client.ObjectList{&imports, &exports} {
		if err := leader.List(ctx, list, client.InNamespace(set.Spec.Namespace)); err != nil {
			return area{}, err
		}
	}
	a := area{imports: map[types.NamespacedName]bool{}, exporters: map[types.NamespacedName][]string{}, policies: map[string]bool{}}
	for _, i := range imports.Items {
		if i.Spec.Kind == v1alpha1.KindServiceImport {
			a.imports[types.NamespacedName{Namespace: i.Spec.Namespace, Name: i.Spec.Name}] = true
		}
		if i.Spec.Kind == v1alpha1.KindAntreaClusterNetworkPolicy {
			a.policies[identity.ImportedPolicyName(i.Spec.Name)] = true
		}
	}
	for _, e := range exports.Items {
		if e.Spec.Kind == v1alpha1.KindService {
			service := types.NamespacedName{Namespace: e.Spec.Namespace, Name: e.Spec.Name}
			a.exporters[service] = append(a.exporters[service], e.Spec.ClusterID)
		}
	}
	return a, nil
}

// leaderClient speaks to the leader as the member does.
func leaderClient(ctx context.Context, c client.Client, set *v1alpha2.ClusterSet) (client.Client, error) {
	secret, err := find[corev1.Secret](ctx, c, client.ObjectKey{Namespace: set.Namespace, Name: leaderOf(set).Secret})
	if err != nil {
		return nil, err
	}
	access, problem := clusterset.MemberAccess(set, set.Spec.ClusterID, secret, true)
	if problem != nil {
		return nil, fmt.Errorf("%s", problem.Message)
	}
	config := &rest.Config{
		Host: access.Server, BearerToken: string(access.Token), Timeout: leaderTime, WarningHandler: rest.NoWarnings{},
		TLSClientConfig: rest.TLSClientConfig{CAData: access.CA},
	}
	return client.New(config, client.Options{Scheme: scheme.New(), Mapper: scheme.AreaMapper()})
}
