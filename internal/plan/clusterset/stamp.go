package clusterset

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// Members are the announces that count: alive, of this ClusterSet, and under the
// name that belongs to their cluster ID. Another object that claims the ID would
// make one member look like two. A nil set stands for any.
func Members(set *v1alpha2.ClusterSet, announces []v1alpha1.MemberClusterAnnounce) []v1alpha1.MemberClusterAnnounce {
	var members []v1alpha1.MemberClusterAnnounce
	for _, a := range announces {
		if a.DeletionTimestamp.IsZero() && a.Name == identity.AnnounceName(a.ClusterID) && (set == nil || a.ClusterSetID == set.Name) {
			members = append(members, a)
		}
	}
	return members
}

// Peers returns which announced clusters speak our exchange, and whether the
// wire's own representation of endpoints is needed because one does not.
func Peers(announces []v1alpha1.MemberClusterAnnounce) (peers map[string]bool, wire bool) {
	peers = make(map[string]bool, len(announces))
	for _, a := range announces {
		speaks := a.Annotations[v1alpha1.AnnotationPeer] != ""
		peers[a.ClusterID] = speaks
		wire = wire || !speaks
	}
	return peers, wire
}

// Acknowledge returns the announce with the leader's finalizer (LDR-MS-1) and,
// for an own peer, the leader's stamp. Both go in one write, so a member that
// finds the finalizer alone knows that the leader is upstream's.
func Acknowledge(a *v1alpha1.MemberClusterAnnounce, set *v1alpha2.ClusterSet, wire bool) *v1alpha1.MemberClusterAnnounce {
	next := a.DeepCopy()
	finalizer := v1alpha1.FinalizerAnnouncePrefix + a.ClusterID
	if !slices.Contains(next.Finalizers, finalizer) {
		next.Finalizers = append(next.Finalizers, finalizer)
	}
	if a.Annotations[v1alpha1.AnnotationPeer] == "" {
		return next
	}
	stamp := v1alpha1.LeaderStamp{ClusterSetUID: set.UID, Exchange: v1alpha1.ExchangeSlices}
	if wire {
		stamp.Exchange = v1alpha1.ExchangeSlicesAndWire
	}
	if before, signed := readStamp(a); signed && before.ClusterSetUID == set.UID {
		stamp.Merged = before.Merged
	}
	writeStamp(next, stamp)
	return next
}

// AwaitsMerge tells whether an own member waits to hear that what it published
// in this session is merged.
func AwaitsMerge(a *v1alpha1.MemberClusterAnnounce) bool {
	return a.Annotations[v1alpha1.AnnotationPublished] != "" && mergeIsDue(a)
}

// mergeIsDue: a leader of ours has answered, but not yet for this session.
func mergeIsDue(a *v1alpha1.MemberClusterAnnounce) bool {
	stamp, signed := readStamp(a)
	return signed && stamp.Merged != a.Annotations[v1alpha1.AnnotationPublished]
}

// Merged returns an answered announce that says so.
func Merged(a *v1alpha1.MemberClusterAnnounce) *v1alpha1.MemberClusterAnnounce {
	next := a.DeepCopy()
	if stamp, signed := readStamp(a); signed {
		stamp.Merged = a.Annotations[v1alpha1.AnnotationPublished]
		writeStamp(next, stamp)
	}
	return next
}

// readStamp of a leader of ours; signed is false when there is none. One that
// cannot be read is empty: that leader writes it again, and meanwhile must not
// be taken for upstream's.
func readStamp(a *v1alpha1.MemberClusterAnnounce) (stamp v1alpha1.LeaderStamp, signed bool) {
	text, signed := a.Annotations[v1alpha1.AnnotationLeader]
	if json.Unmarshal([]byte(text), &stamp) != nil {
		stamp = v1alpha1.LeaderStamp{}
	}
	return stamp, signed
}

func writeStamp(a *v1alpha1.MemberClusterAnnounce, stamp v1alpha1.LeaderStamp) {
	data, err := json.Marshal(stamp)
	if err != nil { // strings
		panic(err)
	}
	metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1alpha1.AnnotationLeader, string(data))
}

// Dismiss returns the announce without the leader's finalizer, once all that
// the member had exported is gone (LDR-GC-2).
func Dismiss(a *v1alpha1.MemberClusterAnnounce) *v1alpha1.MemberClusterAnnounce {
	next := a.DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool {
		return f == v1alpha1.FinalizerAnnouncePrefix+a.ClusterID
	})
	return next
}
