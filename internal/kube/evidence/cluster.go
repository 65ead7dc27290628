package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// atOnce is how many requests one cluster is asked at a time: enough that a long
// way costs little, few enough that fifty clusters on one API server are no crowd.
const atOnce = 4

// systemUID tells two contexts that lead to one cluster.
func systemUID(ctx context.Context, r client.Reader) (types.UID, error) {
	var system corev1.Namespace
	err := r.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &system)
	return system.UID, err
}

// cluster reads what is asked of every cluster, with the part it plays there.
func (r *reading) cluster(p preflight.Part, into *preflight.Cluster) {
	into.UID = p.UID
	r.do(func() { into.ClusterSets = known(r.sets(p)) })
	r.do(func() { into.Legacy = known(r.legacy(p.Namespace)) })
	r.do(func() { into.Controllers = known(Controllers(r.ctx, r.client, "")) })
}

// sets are the ClusterSets of the role's own Namespace.
func (r *reading) sets(p preflight.Part) ([]v1alpha2.ClusterSet, error) {
	return clusterSets(r.ctx, r.client, p.Namespace)
}

func (r *reading) legacy(namespace string) (preflight.Legacy, error) {
	var legacy preflight.Legacy
	var err error
	if legacy.Claims, legacy.ClaimsServed, err = clusterClaims(r.ctx, r.client, namespace); err != nil {
		return legacy, err
	}
	crd, err := clusterSetCRD(r.ctx, r.client)
	if err != nil {
		return legacy, err
	}
	legacy.StoredVersions = crd.Status.StoredVersions
	if !slices.Contains(servedVersions(crd), "v1alpha1") {
		return legacy, nil
	}
	old, err := listAny(r.ctx, r.client, v1alpha1.GroupVersion.WithKind("ClusterSet"), client.InNamespace(namespace))
	for i := range old {
		members, _, _ := unstructured.NestedSlice(old[i].Object, "spec", "members")
		legacy.SpecMembers = legacy.SpecMembers || len(members) > 0
	}
	return legacy, err
}

// greeting is what an API server says to everybody: its version and, in the head
// of its answer, the time.
type greeting struct {
	kubernetes rule.Read[string]
	now        rule.Read[time.Time]
}

func greet(ctx context.Context, config *rest.Config) greeting {
	answer, err := get(ctx, config, "/version")
	if err != nil {
		return greeting{rule.Unreadable[string](reason(err)), rule.Unreadable[time.Time](reason(err))}
	}
	defer answer.Body.Close()
	var info version.Info
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %s", answer.Status)
	}
	if err == nil {
		err = json.Unmarshal(text, &info)
	}
	now, noTime := http.ParseTime(answer.Header.Get("Date"))
	if noTime != nil {
		noTime = fmt.Errorf("its answers tell no time: %w", noTime)
	}
	return greeting{known(info.GitVersion, err), known(now, noTime)}
}

func get(ctx context.Context, config *rest.Config, path string) (*http.Response, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(path).String(), nil)
	if err != nil {
		return nil, err
	}
	return c.Do(request)
}
