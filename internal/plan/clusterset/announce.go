package clusterset

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// AnnounceObserved is what one heartbeat may depend on.
type AnnounceObserved struct {
	Access     Access
	ClusterUID string // UID of this cluster's kube-system Namespace
	// Announce as the leader's API server holds it now; nil when absent.
	Announce *v1alpha1.MemberClusterAnnounce
	// Published names the session in which all exports were found to be in the
	// common area; empty while that is not so.
	Published string
	Now       time.Time // by this member's clock
}

// PlanAnnounce returns the announce as the heartbeat should write it, or the
// reason not to (MEM-CS-3).
func PlanAnnounce(o AnnounceObserved) (*v1alpha1.MemberClusterAnnounce, *Problem) {
	if holder := o.Announce; holder != nil {
		if uid := holder.Annotations[v1alpha1.AnnotationClusterUID]; uid != "" && uid != o.ClusterUID {
			return nil, &Problem{ReasonIDInUse, fmt.Sprintf(
				"cluster ID %q is in use by another cluster of ClusterSet %q; join with another ID, or have the ClusterSet's administrator find the holder with \"lockstep mc status\" on the leader and delete its MemberClusterAnnounce",
				o.Access.ClusterID, o.Access.ClusterSet)}
		}
	}
	if o.Announce == nil {
		return newAnnounce(o), nil
	}
	if !o.Announce.DeletionTimestamp.IsZero() {
		return nil, &Problem{ReasonWithdrawing, fmt.Sprintf(
			"the leader is still withdrawing what cluster %q exported before; it joins by itself when that is done, which needs the leader controller to run", o.Access.ClusterID)}
	}
	next := o.Announce.DeepCopy()
	next.ClusterID, next.ClusterSetID, next.LeaderClusterID = o.Access.ClusterID, o.Access.ClusterSet, o.Access.LeaderID
	annotate(next, o)
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.AnnotationTouch, o.Now.Format(time.RFC3339))
	return next, nil
}

// newAnnounce has no touch-ts: on the wire the first beat is the creation.
func newAnnounce(o AnnounceObserved) *v1alpha1.MemberClusterAnnounce {
	a := &v1alpha1.MemberClusterAnnounce{
		ObjectMeta:      metav1.ObjectMeta{Name: identity.AnnounceName(o.Access.ClusterID), Namespace: o.Access.Namespace},
		ClusterID:       o.Access.ClusterID,
		ClusterSetID:    o.Access.ClusterSet,
		LeaderClusterID: o.Access.LeaderID,
	}
	annotate(a, o)
	return a
}

func annotate(a *v1alpha1.MemberClusterAnnounce, o AnnounceObserved) {
	metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1alpha1.AnnotationPeer, v1alpha1.PeerVersion)
	metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1alpha1.AnnotationClusterUID, o.ClusterUID)
	annotateIf(a, v1alpha1.AnnotationPublished, o.Published)
	annotateIf(a, v1alpha1.AnnotationCredential, Credential(o.Access.Token))
}

// annotateIf says what there is to say, and nothing that was said before.
func annotateIf(a *v1alpha1.MemberClusterAnnounce, key, value string) {
	if value == "" {
		delete(a.Annotations, key)
		return
	}
	metav1.SetMetaDataAnnotation(&a.ObjectMeta, key, value)
}

// Exchange says which representations of endpoints the common area needs, in
// the eyes of a member.
type Exchange string

const (
	// ExchangeUnknown: the leader has not answered yet.
	ExchangeUnknown Exchange = ""
	// ExchangeSlices and ExchangeSlicesAndWire are what our leader asks for.
	ExchangeSlices        Exchange = Exchange(v1alpha1.ExchangeSlices)
	ExchangeSlicesAndWire Exchange = Exchange(v1alpha1.ExchangeSlicesAndWire)
	// ExchangeWire: an upstream leader, which knows only the wire's objects.
	ExchangeWire Exchange = "Wire"
)

// Slices tells whether own peers read endpoints as EndpointSlices.
func (e Exchange) Slices() bool { return e == ExchangeSlices || e == ExchangeSlicesAndWire }

// Wire tells whether an upstream peer reads the wire's Endpoints.
func (e Exchange) Wire() bool { return e == ExchangeWire || e == ExchangeSlicesAndWire }

// LeaderAnswer is what an announce says about the leader that saw it.
type LeaderAnswer struct {
	Seen          bool // a leader has put its finalizer on the announce
	Exchange      Exchange
	ClusterSetUID string
}

// ReadAnswer finds the leader's answer on an announce. Our leader writes its
// stamp in the same update as the finalizer, so a finalizer alone is upstream's.
func ReadAnswer(a *v1alpha1.MemberClusterAnnounce) LeaderAnswer {
	if a == nil || !slices.Contains(a.Finalizers, v1alpha1.FinalizerAnnouncePrefix+a.ClusterID) {
		return LeaderAnswer{}
	}
	stamp, signed := readStamp(a)
	switch exchange := Exchange(stamp.Exchange); {
	case !signed:
		return LeaderAnswer{Seen: true, Exchange: ExchangeWire}
	case exchange == ExchangeSlices || exchange == ExchangeSlicesAndWire:
		return LeaderAnswer{Seen: true, Exchange: exchange, ClusterSetUID: string(stamp.ClusterSetUID)}
	}
	return LeaderAnswer{} // damaged, or of a mode we do not know: as good as not answered
}

// Revision reads a resource version as the number it is on every API server
// that etcd stands behind (KEP-5504 makes that comparison official); 0 when it
// is not one.
func Revision(resourceVersion string) uint64 {
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
