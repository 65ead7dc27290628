package clusterset

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// rememberEvery is how far the common area's revision may run ahead of what is
// stored before it is stored again: far enough that a quiet member writes
// nothing, near enough that a backup of any age that matters is older.
const rememberEvery = 1000

// Contact is what one successful heartbeat tells about the common area.
type Contact struct {
	ClusterSetUID string // from the leader's answer; empty when it has not answered
	Revision      uint64 // resource version of the announce just written
	// Foreign is set when the announce was not as this process had left it,
	// although nobody else may write it: it was deleted, or is an older one.
	Foreign bool
}

// Remember compares a contact with what is remembered. lost tells that the
// common area has lost writes this member had seen: caches must be read afresh
// and withdrawals held. The returned memory is to be stored if it differs.
func Remember(memory v1alpha1.LeaderMemory, contact Contact, now time.Time) (next v1alpha1.LeaderMemory, lost bool) {
	next = memory
	uid := types.UID(contact.ClusterSetUID)
	replaced := uid != "" && memory.ClusterSetUID != "" && uid != memory.ClusterSetUID
	rewound := contact.Revision < memory.Revision
	lost = replaced || rewound || contact.Foreign
	if lost && next.HoldSince == nil {
		next.HoldSince = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	if uid != "" {
		next.ClusterSetUID = uid
	}
	if lost || contact.Revision >= memory.Revision+rememberEvery || memory.Revision == 0 {
		next.Revision = contact.Revision
	}
	return next, lost
}

// ReadMemory parses the annotation; a damaged one is as good as none.
func ReadMemory(annotations map[string]string) v1alpha1.LeaderMemory {
	var memory v1alpha1.LeaderMemory
	if json.Unmarshal([]byte(annotations[v1alpha1.AnnotationLeaderSeen]), &memory) != nil {
		return v1alpha1.LeaderMemory{}
	}
	return memory
}

// WriteMemory is the annotation's value.
func WriteMemory(memory v1alpha1.LeaderMemory) string {
	data, err := json.Marshal(memory)
	if err != nil { // strings and numbers only
		panic(err)
	}
	return string(data)
}

// Accepted tells whether an administrator has confirmed the common area as it
// is now ("lockstep mc accept-leader").
func Accepted(annotations map[string]string, memory v1alpha1.LeaderMemory) bool {
	accepted := annotations[v1alpha1.AnnotationAcceptLeader]
	return accepted != "" && accepted == string(memory.ClusterSetUID)
}

// Sighting is how a cluster's announce looked when a hold began.
type Sighting struct{ Touch string }

// Released returns the clusters whose exports are known to be in the common
// area again: their announce has changed since the hold began, so it was
// written by a living member and not by a backup, and it says "published".
func Released(before map[string]Sighting, now []v1alpha1.MemberClusterAnnounce) map[string]bool {
	released := map[string]bool{}
	for _, a := range now {
		first, known := before[a.ClusterID]
		alive := !known || first.Touch != a.Annotations[v1alpha1.AnnotationTouch]
		if alive && a.DeletionTimestamp.IsZero() && a.Annotations[v1alpha1.AnnotationPublished] != "" {
			released[a.ClusterID] = true
		}
	}
	return released
}
