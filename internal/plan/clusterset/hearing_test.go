package clusterset_test

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// sign is a sign of life of one member.
type sign struct {
	at      time.Time
	renewal bool // of its Lease; else a heartbeat
}

// signals gives signs of life of east to a Hearing, which knows of it and of its
// Lease and has heard neither.
type signals struct {
	*clusterset.Hearing
	count int
}

func newSignals() *signals {
	s := &signals{Hearing: &clusterset.Hearing{Periods: periods}}
	s.Look(nil, noon)
	s.give(sign{noon, false})
	s.give(sign{noon, true})
	return s
}

func (s *signals) give(next sign) {
	s.count++
	if next.renewal {
		lease := clusterset.RenewedLease(clusterset.Access{ClusterID: "east"}, eastUID, nil, time.Second, next.at)
		lease.ResourceVersion = strconv.Itoa(s.count)
		s.Renewed(lease, next.at)
		return
	}
	s.Look([]v1alpha1.MemberClusterAnnounce{announce("east", s.count, annotated(v1alpha1.AnnotationClusterUID, eastUID))}, next.at)
}

// onlyBeats is the slow twin: it tells from all signs of a member whether no renewal
// is expected of it any more. What came after the last renewal is cut where the member
// was silent. Either one piece is longer than renewals may be missing, or there is a
// third.
func onlyBeats(signs []sign) bool {
	last := -1
	for i, s := range signs {
		if s.renewal {
			last = i
		}
	}
	if last < 0 {
		return true
	}
	var pieces [][]time.Time
	before, piece := signs[last].at, []time.Time{}
	for _, s := range signs[last+1:] {
		if s.at.Sub(before) > periods.LeaseTimeout {
			pieces, piece = append(pieces, piece), nil
		}
		piece, before = append(piece, s.at), s.at
	}
	pieces = append(pieces, piece)
	for _, piece := range pieces {
		if n := len(piece); n > 0 && piece[n-1].Sub(piece[0]) > periods.LeaseTimeout {
			return true
		}
	}
	return len(pieces) > 2
}

// Whatever the order of its beats and renewals, a member that renews is silent 9 s
// after its last sign of life; one whose beats have come alone for long, after the
// 30 s of the wire; and neither is before.
//
// covers: LDR-MS-2, WK-37, WK-42
func TestSilentInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, now := newSignals(), noon
		var signs []sign
		for range rapid.IntRange(0, 20).Draw(t, "signs") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 500, 2900, 3000, 3100, 6000, 8900, 9000, 9001, 10000, 25000, 60000}).Draw(t, "after ms")) * time.Millisecond)
			next := sign{now, rapid.Bool().Draw(t, "renewal")}
			signs = append(signs, next)
			h.give(next)
			patience := periods.LeaseTimeout
			if onlyBeats(signs) {
				patience = periods.BeatTimeout
			}
			if h.Silent("east", now.Add(patience)) || !h.Silent("east", now.Add(patience+time.Millisecond)) {
				t.Fatalf("after %v it does not become silent %s after its last sign", signs, patience)
			}
		}
	})
}

// A member whose Lease alone has ended is never silent: with each refusal it beats at
// once, until no renewal is expected of it any more.
//
// covers: WK-42
func TestEndOfALeaseIsNotSilence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, now := newSignals(), noon
		late := func(what string) time.Duration { // on the way, and until the leader looks
			return time.Duration(rapid.IntRange(0, 900).Draw(t, what)) * time.Millisecond
		}
		give := func(s sign) {
			if h.Silent("east", s.at) {
				t.Fatalf("it is silent at %s, before its next sign", s.at.Sub(noon))
			}
			h.give(s)
		}
		give(sign{now.Add(late("renewal")), true})
		if rapid.Bool().Draw(t, "a beat in between") {
			give(sign{now.Add(900*time.Millisecond + late("beat")), false})
		}
		for range refusalsTold {
			now = now.Add(periods.LeaseEvery)
			give(sign{now.Add(late("refusal")), false})
		}
		for range 5 {
			now = now.Add(periods.BeatEvery)
			give(sign{now.Add(late("beat alone")), false})
		}
	})
}

// What no longer says whose Lease would prove its life is not expected to renew.
func TestRenewalsOfAnotherClusterAreNotExpected(t *testing.T) {
	for name, tc := range map[string]struct {
		uid  string
		want bool
	}{
		"the same":                   {eastUID, false},
		"another cluster of this ID": {"uid-of-mars", true},
		"an older controller":        {"", true},
	} {
		h := newSignals()
		h.give(sign{noon.Add(time.Second), true})
		h.Look([]v1alpha1.MemberClusterAnnounce{announce("east", 59, annotated(v1alpha1.AnnotationClusterUID, tc.uid))}, noon.Add(2*time.Second))
		if got := !h.Silent("east", noon.Add(20*time.Second)); got != tc.want {
			t.Errorf("%s: it is borne for the time of the wire: %t", name, got)
		}
	}
}
