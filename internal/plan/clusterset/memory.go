package clusterset

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// rememberEvery is how far the common area's revision may run ahead of what is
// stored before it is stored again.
const rememberEvery = 1000

// RememberAfter is for how many heartbeats what is stored may stay behind: a
// member writes it once a minute. Only a backup that is younger than that, and
// that takes effect while the member's process is restarted, goes unnoticed.
const RememberAfter = 6

// Contact is what one successful heartbeat tells about the common area.
type Contact struct {
	ClusterSetUID string // from the leader's answer; empty when it has not answered
	Revision      uint64 // resource version of the common area as it was read
	// Touch is the touch-ts found on this member's announce; empty without one.
	Touch string
	// AsLeft is set when the announce is exactly as this process had left it, so
	// that nothing this member had seen by then is lost. Foreign is set when it
	// is another one, although nobody else may write it: it is gone, or older.
	// A process that has not written any yet can say neither.
	AsLeft, Foreign bool
	// Dismissed is set when the announce is gone and was written last so long ago
	// that the leader deletes it (LDR-GC-1). That is no loss of writes.
	Dismissed bool
	// StoreAfter is the age at which the remembered touch-ts is stored again.
	StoreAfter time.Duration
}

// Remember compares a contact with what is remembered. lost tells that the
// common area has lost writes this member had seen: caches must be read afresh
// and withdrawals held. The returned memory is to be stored if it differs.
func Remember(memory v1alpha1.LeaderMemory, contact Contact, now time.Time) (next v1alpha1.LeaderMemory, lost bool) {
	next = memory
	uid := types.UID(contact.ClusterSetUID)
	replaced := uid != "" && memory.ClusterSetUID != "" && uid != memory.ClusterSetUID
	rewound := contact.Revision < memory.Revision
	lost = replaced || rewound || !contact.Dismissed && (contact.Foreign || contact.predates(memory))
	if lost && next.HoldSince == nil {
		next.HoldSince = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	if uid != "" {
		next.ClusterSetUID = uid
	}
	if contact.Dismissed {
		next.Touch = "" // of an announce that will not come back
	}
	if lost || contact.Revision >= memory.Revision+rememberEvery || memory.Revision == 0 {
		next.Revision = contact.Revision
	}
	if lost || contact.Touch != "" && contact.age(memory).Abs() >= contact.StoreAfter {
		next.Touch, next.Revision = contact.Touch, contact.Revision
	}
	return next, lost
}

// predates tells whether the announce is older than one this member is known
// to have written, or gone. Only a leader of ours is asked: upstream's deletes
// the announces of members it has not heard of for a day (LDR-GC-1). What this
// process wrote itself is good whichever way its clock was set meanwhile.
func (c Contact) predates(memory v1alpha1.LeaderMemory) bool {
	if c.AsLeft || memory.Touch == "" || memory.ClusterSetUID == "" {
		return false
	}
	return c.Touch == "" || c.age(memory) < 0
}

// Dismisses tells whether an announce that is gone may have been deleted because
// of silence: the one remembered was written that long ago, by the clock of this
// member at both ends.
func Dismisses(memory v1alpha1.LeaderMemory, now time.Time, after time.Duration) bool {
	touch := parseTouch(memory.Touch)
	return !touch.IsZero() && now.Sub(touch) >= after
}

// age is by how much the touch-ts found is younger than the one remembered. A
// touch-ts that is none counts as very old.
func (c Contact) age(memory v1alpha1.LeaderMemory) time.Duration {
	return parseTouch(c.Touch).Sub(parseTouch(memory.Touch))
}

func parseTouch(touch string) time.Time {
	t, err := time.Parse(time.RFC3339, touch)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Recall is what a process that begins knows of the leader. A damaged annotation
// may have said that withdrawals are held, so they are.
func Recall(annotations map[string]string, now time.Time) v1alpha1.LeaderMemory {
	text := annotations[v1alpha1.AnnotationLeaderSeen]
	if text != "" && json.Unmarshal([]byte(text), &v1alpha1.LeaderMemory{}) != nil {
		return v1alpha1.LeaderMemory{HoldSince: &metav1.Time{Time: now.Truncate(time.Second)}}
	}
	return ReadMemory(annotations)
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

// Acceptance is what an administrator says to end a hold: the UID of the leader's
// ClusterSet. An upstream leader names none; there it is the time since when
// withdrawals are held. Empty when there is no hold.
func Acceptance(memory v1alpha1.LeaderMemory) string {
	switch {
	case memory.HoldSince == nil:
		return ""
	case memory.ClusterSetUID != "":
		return string(memory.ClusterSetUID)
	}
	return memory.HoldSince.UTC().Format(time.RFC3339)
}

// Accepted tells whether an administrator has confirmed the common area as it
// is now ("lockstep mc accept-leader").
func Accepted(annotations map[string]string, memory v1alpha1.LeaderMemory) bool {
	accepted := annotations[v1alpha1.AnnotationAcceptLeader]
	return accepted != "" && accepted == Acceptance(memory)
}

// Sighting is how a cluster's announce looked when a hold began.
type Sighting struct{ Touch string }

// Released returns the clusters whose exports are known to be in the common
// area, and in its imports, again: their announce has changed since the hold
// began, so it was written by a living member and not by a backup; it says
// "published"; and our leader says that it has merged what was published then.
// An upstream leader says nothing, so there the member's word has to do.
func Released(before map[string]Sighting, now []v1alpha1.MemberClusterAnnounce) map[string]bool {
	released := map[string]bool{}
	for _, a := range now {
		first, known := before[a.ClusterID]
		alive := !known || first.Touch != a.Annotations[v1alpha1.AnnotationTouch]
		if alive && a.DeletionTimestamp.IsZero() && a.Annotations[v1alpha1.AnnotationPublished] != "" && !mergeIsDue(&a) {
			released[a.ClusterID] = true
		}
	}
	return released
}
