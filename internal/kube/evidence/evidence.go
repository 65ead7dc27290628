package evidence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/several"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Cluster is one cluster as whoever looks reaches it.
type Cluster struct {
	// Context of the kubeconfig.
	Context string
	Client  client.Reader
	// Config of the same connection; its clock and whether it takes a token are
	// asked for past the client.
	Config *rest.Config
	// Failure says why there is no Client.
	Failure error
}

// Options say what is read.
type Options struct {
	// ClusterSet that is meant; empty when the clusters hold only one.
	ClusterSet string
	// CommandLine is the version of upstream's command line that is in use; empty
	// when none is.
	CommandLine string
	// Limit is how long one cluster may take to answer.
	Limit time.Duration
}

// Result is what was read, and by way of which contexts.
type Result struct {
	preflight.Evidence
	Parts preflight.Parts
}

// Read looks at all clusters at once, first for the part that each plays, then
// for everything that its part is made of. An error means that the contexts do
// not make one ClusterSet; nothing else is one.
func Read(ctx context.Context, clusters []Cluster, o Options) (Result, error) {
	surveyed := several.Each(clusters, func(c Cluster) preflight.Context { return survey(ctx, c, o.Limit) })
	parts, err := preflight.Assign(surveyed, o.ClusterSet)
	if err != nil {
		return Result{}, err
	}
	find := func(context string) Cluster {
		return clusters[slices.IndexFunc(clusters, func(c Cluster) bool { return c.Context == context })]
	}
	e := preflight.Evidence{CLI: rule.Known(o.CommandLine), Leader: preflight.Leader{Namespace: parts.Leader.Namespace}}
	var leader Cluster // the zero value was not read
	if parts.Leader.Unreachable == "" {
		leader = find(parts.Leader.Context)
	}
	var all sync.WaitGroup
	all.Go(func() {
		if e.Leader.Unreachable = parts.Leader.Unreachable; leader.Config != nil {
			e.Leader = readLeader(ctx, leader, parts.Leader, o.Limit)
		}
	})
	var members []memberRead
	all.Go(func() {
		members = several.Each(parts.Members, func(p preflight.Part) memberRead {
			if p.Unreachable != "" {
				return memberRead{Member: preflight.Member{ID: p.ID, Cluster: preflight.Cluster{Unreachable: p.Unreachable}}}
			}
			return readMember(ctx, find(p.Context), p, leader, o.Limit)
		})
	})
	all.Wait()
	e.Members = complete(members, e.Leader)
	return Result{Evidence: e, Parts: parts}, nil
}

// survey is a first look at a cluster. What answers too late, or says that it
// cannot be reached, is not read further.
func survey(ctx context.Context, c Cluster, limit time.Duration) preflight.Context {
	if c.Failure != nil {
		return preflight.Context{Name: c.Context, Unreachable: c.Failure.Error()}
	}
	seen, ok := several.Within(ctx, limit, func(ctx context.Context) preflight.Context { return look(ctx, c) })
	if !ok {
		return preflight.Context{Name: c.Context, Unreachable: fmt.Sprintf("no answer within %s", limit)}
	}
	return seen
}

func look(ctx context.Context, c Cluster) preflight.Context {
	seen := preflight.Context{Name: c.Context}
	uid, err := systemUID(ctx, c.Client)
	if err != nil && !apierrors.IsForbidden(err) {
		seen.Unreachable = reason(err)
		return seen
	}
	seen.UID = uid
	seen.ClusterSets = known(clusterSets(ctx, c.Client, ""))
	seen.Claims = claimsOf(ctx, c.Client, seen.ClusterSets)
	return seen
}

// claimsOf are the IDs that ClusterSets of before v1.13 leave to ClusterClaims.
func claimsOf(ctx context.Context, r client.Reader, sets rule.Read[[]v1alpha2.ClusterSet]) []v1alpha2.ClusterClaim {
	all, _ := sets.Get()
	if !slices.ContainsFunc(all, func(s v1alpha2.ClusterSet) bool { return s.Spec.ClusterID == "" }) {
		return nil
	}
	claims, _, _ := clusterClaims(ctx, r, "") // those that cannot be read are missed by UPG-CHK-9
	return claims
}

// complete adds what only the leader knows of members: who announced itself and
// was not looked at, and in which form each publishes its endpoints.
func complete(read []memberRead, leader preflight.Leader) []preflight.Member {
	announces, _ := leader.Announces.Get()
	peers := map[string]bool{}
	for _, a := range announces {
		peers[a.ClusterID] = preflight.PublishesSlices(&a)
	}
	var members []preflight.Member
	for _, m := range read {
		members = append(members, m.finish(peers[m.ID]))
	}
	for _, a := range announces {
		if !slices.ContainsFunc(members, func(m preflight.Member) bool { return m.ID == a.ClusterID }) {
			members = append(members, preflight.Member{ID: a.ClusterID, Cluster: preflight.Cluster{
				Unreachable: "none of the contexts that could be read is that member",
			}})
		}
	}
	return members
}

// reason says in a few words why something could not be read.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}

// known turns the outcome of a reading into knowledge or the reason why there is none.
func known[T any](value T, err error) rule.Read[T] {
	if err != nil {
		return rule.Unreadable[T](reason(err))
	}
	return rule.Known(value)
}
