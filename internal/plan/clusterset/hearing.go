package clusterset

import (
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// Periods are the times that signs of life go by.
type Periods struct {
	// BeatEvery is how often a member touches its announce; BeatTimeout the age of
	// the last touch at which it counts as disconnected, on either side.
	BeatEvery, BeatTimeout time.Duration
	// LeaseEvery is how often a member of ours renews its Lease; LeaseTimeout the
	// age of the last renewal at which such a member counts as disconnected.
	LeaseEvery, LeaseTimeout time.Duration
	// Sight is the age of a member's last contact with the leader at which it does
	// not see the leader any more, and takes no endpoint away because of what the
	// leader said before.
	Sight time.Duration
	// CleanUpAfter is how long a member has to be silent before what it exports is
	// deleted (LDR-GC-1); Warning for how long that is announced before.
	CleanUpAfter, Warning time.Duration
}

// leastLease: the last renewals before a time-out come so close to each other
// in a test whose periods are scaled down that the machine's own delays would
// look like silence.
const leastLease = time.Second

// NewPeriods are those of the wire and ours, scaled.
func NewPeriods(scale func(time.Duration) time.Duration) Periods {
	lease := max(scale(3*time.Second), leastLease)
	return Periods{
		BeatEvery: scale(HeartbeatEvery), BeatTimeout: scale(BeatTimeout),
		LeaseEvery: lease, LeaseTimeout: 3 * lease,
		Sight:        4 * lease,
		CleanUpAfter: scale(24 * time.Hour), Warning: scale(12 * time.Hour),
	}
}

// Receipts says when the leader last had a sign of life of each member, by the
// leader's own clock. It is what this process witnessed; what came before it is
// in the status and on the announces.
type Receipts map[string]Receipt

// Receipt is the last sign of life of one member.
type Receipt struct {
	Touch string    // touch-ts as it was then, compared for change only
	At    time.Time // leader's clock
	Heard bool      // false: present when this process began to look, not heard since
	// Touched is when the announce was seen to change; zero when this process has
	// not seen that.
	Touched time.Time
	// Renewing: signs of the Lease are expected, so silence is noticed sooner.
	Renewing bool

	renewed time.Time     // of the Lease; zero before
	from    time.Time     // since when silence counts: At, or when the leader could hear again
	deaf    time.Duration // of the leader until from
	holder  string        // UID of the cluster, which the holder of the Lease has to be
}

// Hearing is what one process of the leader has heard, and for how long it could
// hear at all:
//
//	member   ──•──•──•──•──✗ (dead)
//	leader   ──•──•──•──•──•──•──   own election Lease, through the same watch
//	          silence counts here ▔▔▔
//
// An API server that is away, or a leader that was frozen, hears nobody; that is
// no silence of members. The leader's own Lease passes the same API server and
// the same watch as those of members, so while it is not heard, time stands
// still. A leader without an election goes by its clock alone.
type Hearing struct {
	Periods Periods

	receipts Receipts          // nil before the first look
	marks    map[string]string // of each Lease as it was seen last, by cluster
	itself   time.Time         // when the leader last heard itself; zero before
	deaf     time.Duration     // until itself
}

// itselfEvery is how late the next renewal of the leader's own Lease may be; it is
// renewed every 2 s.
const itselfEvery = 4 * time.Second

// Itself notes that the leader has heard itself. When it was deaf before, whoever
// was not silent by then has all the time again to be heard: members find back to
// an API server one after another.
func (h *Hearing) Itself(now time.Time) {
	deaf := h.Deaf(now)
	if deaf > h.deaf {
		for cluster, receipt := range h.receipts {
			if !h.Silent(cluster, now) {
				receipt.from, receipt.deaf = now, deaf
				h.receipts[cluster] = receipt
			}
		}
	}
	h.deaf, h.itself = deaf, now
}

// Deaf is for how long, in all, this process could not have heard anybody.
func (h *Hearing) Deaf(now time.Time) time.Duration {
	if h.itself.IsZero() {
		return 0
	}
	return h.deaf + max(0, now.Sub(h.itself)-itselfEvery)
}

// Receipts returns a copy; nil before the first look.
func (h *Hearing) Receipts() Receipts { return maps.Clone(h.receipts) }

// Silence is for how long nothing was heard of a member while it could have been.
func (h *Hearing) Silence(cluster string, now time.Time) time.Duration {
	receipt := h.receipts[cluster]
	return now.Sub(receipt.from) - (h.Deaf(now) - receipt.deaf)
}

// Silent tells whether the silence is longer than signs of life may be apart.
func (h *Hearing) Silent(cluster string, now time.Time) bool {
	return h.Silence(cluster, now) > h.patience(cluster)
}

func (h *Hearing) patience(cluster string) time.Duration {
	if h.receipts[cluster].Renewing {
		return h.Periods.LeaseTimeout
	}
	return h.Periods.BeatTimeout
}

// Look compares the announces with those of the last look. What is there at the
// first look of a process was not heard by it.
func (h *Hearing) Look(announces []v1alpha1.MemberClusterAnnounce, now time.Time) {
	after := make(Receipts, len(announces))
	for _, a := range announces {
		touch := string(a.UID) + a.Annotations[v1alpha1.AnnotationTouch]
		receipt, known := h.receipts[a.ClusterID]
		if !known || receipt.Touch != touch {
			// Beats without renewals in between: the Lease has ended, not the member.
			receipt.Renewing = receipt.Renewing && now.Sub(receipt.renewed) <= h.Periods.LeaseTimeout
			receipt.Touch, receipt.At, receipt.from, receipt.deaf = touch, now, now, h.Deaf(now)
			if known || h.receipts != nil {
				receipt.Heard, receipt.Touched = true, now
			}
		}
		receipt.holder = a.Annotations[v1alpha1.AnnotationClusterUID]
		after[a.ClusterID] = receipt
	}
	h.receipts = after
}

// Renewed notes a Lease as it was seen now, and tells whether that is news: a
// member that was silent, or not heard yet, lives. Only that a Lease changes
// counts; its times are by the clock of the member (WK-37).
func (h *Hearing) Renewed(lease *coordinationv1.Lease, now time.Time) (news bool) {
	cluster, ok := identity.LeaseOwner(lease.Name)
	if !ok {
		return false
	}
	before, seen := h.marks[cluster]
	mark := string(lease.UID) + "/" + lease.ResourceVersion
	if h.marks == nil {
		h.marks = map[string]string{}
	}
	h.marks[cluster] = mark
	receipt, member := h.receipts[cluster]
	if !seen || before == mark || !member || receipt.holder == "" || holderOf(lease) != receipt.holder {
		return false
	}
	news = !receipt.Heard || h.Silent(cluster, now)
	receipt.At, receipt.from, receipt.renewed, receipt.deaf = now, now, now, h.Deaf(now)
	receipt.Heard, receipt.Renewing = true, true
	h.receipts[cluster] = receipt
	return news
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// RenewedLease is the Lease of a member as the next renewal should write it;
// current is nil when there is none. Its times are for people to read.
func RenewedLease(access Access, clusterUID string, current *coordinationv1.Lease, timeout time.Duration, now time.Time) *coordinationv1.Lease {
	next := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: identity.LeaseName(access.ClusterID), Namespace: access.Namespace}}
	if current != nil {
		next = current.DeepCopy()
	}
	if holderOf(next) != clusterUID {
		next.Spec.HolderIdentity, next.Spec.AcquireTime = &clusterUID, &metav1.MicroTime{Time: now}
	}
	seconds := int32(max(1, (timeout+time.Second-1)/time.Second))
	next.Spec.LeaseDurationSeconds, next.Spec.RenewTime = &seconds, &metav1.MicroTime{Time: now}
	return next
}
