package scenario_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/member"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// loseBeats loses heartbeats of a member: those that remain, the request or only
// its answer.
type loseBeats struct {
	remain   atomic.Int32
	answered bool
}

type losing struct {
	*loseBeats
	next http.RoundTripper
}

func (l losing) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPut || !strings.Contains(request.URL.Path, "/memberclusterannounces/") || l.remain.Add(-1) < 0 {
		return l.next.RoundTrip(request)
	}
	if l.answered {
		response, err := l.next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		response.Body.Close()
	}
	return nil, errors.New("the connection is lost")
}

// A process that begins while the leader is slow does not know whether its first
// heartbeat was written. The one it then finds, its predecessor's or its own, is
// no sign that the common area lost anything.
//
// covers: MEM-CS-3
func TestALostFirstHeartbeatIsNoLossOfTheLeader(t *testing.T) {
	for name, answered := range map[string]bool{"it was not written": false, "only the answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			f := fleet.New(t, clusters.Lab(t), nameOf(t))
			lose := &loseBeats{answered: answered}
			east := f.Member(t, "east", func(o *member.Options) {
				o.Wrap = func(next http.RoundTripper) http.RoundTripper { return losing{lose, next} }
			})
			beats(t, f, "east", 1)
			witness := east.Watch(t, "default")
			east.Stop(t)
			lose.remain.Store(3)
			east.Start(t)
			fleet.Eventually(t, "the first heartbeats are lost", func() error {
				if lose.remain.Load() > 0 {
					return errors.New("some are still to come")
				}
				return nil
			})
			beats(t, f, "east", 2)
			set, err := east.ReadSet(t)
			if err != nil {
				t.Fatal(err)
			}
			if memory := clusterset.ReadMemory(set.Annotations); memory.HoldSince != nil || witness.SawReason(clusterset.ReasonLeaderRestored) {
				t.Errorf("withdrawals were held: %+v", memory)
			}
		})
	}
}
