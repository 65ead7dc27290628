package mc

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// holder is an object of the common area that stands for a cluster ID.
type holder struct {
	ID     string
	Object string // as in `ServiceAccount "east-token"`
	// Bound is true for a credential. An announce may have the ID that is to be
	// bound: that is the member in question.
	Bound bool
}

// takenIDs lists who holds which ID, the credential called except left out.
func takenIDs(ctx context.Context, c client.Client, namespace, except string) ([]holder, error) {
	var accounts corev1.ServiceAccountList
	var announces v1alpha1.MemberClusterAnnounceList
	for _, list := range []client.ObjectList{&accounts, &announces} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
	}
	var taken []holder
	for _, account := range accounts.Items {
		if id := account.Annotations[v1alpha1.AnnotationClusterID]; id != "" && account.Name != except {
			taken = append(taken, holder{ID: id, Object: fmt.Sprintf("ServiceAccount %q", account.Name), Bound: true})
		}
	}
	for _, announce := range announces.Items {
		taken = append(taken, holder{ID: announce.ClusterID, Object: fmt.Sprintf("member announce %q", announce.Name)})
	}
	slices.SortFunc(taken, func(a, b holder) int { return cmp.Compare(a.Object, b.Object) })
	return taken, nil
}

// refuseTaken refuses an ID that another credential is bound to, and one whose
// exports could get the names of another cluster's exports.
func refuseTaken(what, id string, taken []holder) error {
	for _, other := range taken {
		switch {
		case other.Bound && other.ID == id:
			return &refusal.Refusal{
				What: what,
				Why:  fmt.Sprintf("%s is bound to cluster %q already", other.Object, id),
				Next: "use that token, or choose another cluster ID",
				Rule: "UPG-CHK-2",
			}
		case dashPair(other.ID, id):
			return &refusal.Refusal{
				What: what,
				Why: fmt.Sprintf("cluster IDs %q and %q (%s) differ by a dash and a suffix, so exports of the two clusters can get one name",
					id, other.ID, other.Object),
				Next: "choose an ID that neither begins with the other and a dash, nor the other way round",
				Rule: "ADM-MCA-11",
			}
		}
	}
	return nil
}
