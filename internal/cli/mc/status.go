package mc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/overview"
	"github.com/lockstep-dev/lockstep/internal/kube/several"
)

// Source is one cluster that Status reads.
type Source struct {
	Context string
	Reader  client.Reader
	// Failure says why there is no Reader.
	Failure error
}

// Status reads all clusters at once, each within the limit, and joins what they
// say. A cluster that does not answer in time takes nothing from the others. When
// none could be read, the view tells why, and that is an error.
func Status(ctx context.Context, sources []Source, limit time.Duration) (overview.View, error) {
	clusters := readAll(ctx, sources, limit)
	return overview.New(time.Now(), clusters), nothingRead(clusters)
}

func nothingRead(clusters []overview.Cluster) error {
	if len(clusters) == 0 || slices.ContainsFunc(clusters, func(c overview.Cluster) bool { return c.Failure == "" }) {
		return nil
	}
	const what = "cannot show the status"
	for _, c := range clusters {
		if c.Right != (exit.Right{}) {
			return explain(what, &missingRight{c.Right, fmt.Errorf("no cluster could be read: %s", c.Failure)})
		}
	}
	return failed(what, "see the page for why, and what to do", errors.New("no cluster could be read"))
}

func readAll(ctx context.Context, sources []Source, limit time.Duration) []overview.Cluster {
	return several.Each(sources, func(source Source) overview.Cluster { return readWithin(ctx, source, limit) })
}

func readWithin(ctx context.Context, source Source, limit time.Duration) overview.Cluster {
	if source.Failure != nil {
		return overview.Cluster{Context: source.Context, Failure: source.Failure.Error()}
	}
	cluster, ok := several.Within(ctx, limit, func(ctx context.Context) overview.Cluster { return read(ctx, source) })
	if !ok {
		return overview.Cluster{Context: source.Context, Failure: fmt.Sprintf("no answer within %s", limit)}
	}
	return cluster
}

func read(ctx context.Context, source Source) overview.Cluster {
	r := reading{reader: source.Reader, cluster: overview.Cluster{Context: source.Context}}
	if err := r.all(ctx); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("no answer in time")
		}
		return overview.Cluster{Context: source.Context, Failure: err.Error(), Next: certificateStep(err), Right: rightOf(err)}
	}
	return r.cluster
}

// rightOf is the right that an error says is missing; the zero value when it says
// none.
func rightOf(err error) exit.Right {
	var lacking *missingRight
	if errors.As(err, &lacking) {
		return lacking.right
	}
	return exit.Right{}
}

// reading fills in one cluster.
type reading struct {
	reader  client.Reader
	cluster overview.Cluster
}

func (r *reading) all(ctx context.Context) error {
	var system corev1.Namespace
	err := r.reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system)
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	r.cluster.UID = system.UID

	var sets v1alpha2.ClusterSetList
	// All else is read for the sake of a ClusterSet: without the right to see these,
	// nothing at all was read, which is no gap in a page.
	if err := r.reader.List(ctx, &sets); err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	r.cluster.ClusterSets = sets.Items
	for i := range sets.Items {
		if !isMember(&sets.Items[i]) {
			if err := r.area(ctx, sets.Items[i].Namespace); err != nil {
				return err
			}
		}
	}
	if slices.ContainsFunc(sets.Items, func(s v1alpha2.ClusterSet) bool { return isMember(&s) }) {
		return r.services(ctx)
	}
	return nil
}

// area reads a common area.
func (r *reading) area(ctx context.Context, namespace string) error {
	var announces v1alpha1.MemberClusterAnnounceList
	var exports v1alpha1.ResourceExportList
	var accounts corev1.ServiceAccountList
	var leases coordinationv1.LeaseList
	for _, list := range []client.ObjectList{&announces, &exports, &accounts, &leases} {
		if err := r.list(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	r.cluster.Announces = append(r.cluster.Announces, announces.Items...)
	r.cluster.ResourceExports = append(r.cluster.ResourceExports, exports.Items...)
	r.cluster.Accounts = append(r.cluster.Accounts, accounts.Items...)
	r.cluster.Leases = append(r.cluster.Leases, leases.Items...)
	loss := v1alpha1.ResourceImport{}
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.MemberLossImport}, &loss)
	if err == nil {
		r.cluster.Losses = append(r.cluster.Losses, loss)
	}
	return r.tolerate(client.IgnoreNotFound(err))
}

func (r *reading) list(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return r.tolerate(r.reader.List(ctx, list, options...))
}

// tolerate goes on without what may not be read. A kind the cluster does not
// have is an empty list; one that is forbidden is a gap, which the page tells.
func (r *reading) tolerate(err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return nil
	case apierrors.IsForbidden(err):
		r.cluster.Gaps = append(r.cluster.Gaps, overview.Gap{Why: err.Error(), Right: rightOf(err)})
		return nil
	default:
		return err
	}
}
