package faults_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/leader"
	"github.com/lockstep-dev/lockstep/internal/member"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// The leader's API server answers every controller with 429 for a while.
func TestAPIServerIsOverloaded(t *testing.T) {
	a := begin(t)
	there, here := prepare(t, a.east, a.west, a.hub), prepare(t, a.west, a.east, a.hub)
	inject(t, a.Leader.Lab.Overload, a.Leader.Lab.Relieve)
	there.make(t)
	here.make(t)
	for _, m := range []*fleet.Controller{a.east, a.west} {
		says(t, m, clusterset.ReasonDisconnected)
	}
	there.unseen(t, a.west)
	here.unseen(t, a.east)
	must(t, a.Leader.Lab.Relieve(t.Context()))
	there.arrived(t, a.west, a.hub)
	here.arrived(t, a.east, a.hub)
	for _, m := range a.members() {
		m.AwaitReady(t)
		a.counted(t, m.ID, "True")
	}
}

// The leader's etcd takes no more writes for a while: it has reached its quota.
func TestEtcdIsFull(t *testing.T) {
	a := begin(t)
	there, here := prepare(t, a.east, a.west), prepare(t, a.west, a.east)
	inject(t, a.Leader.Lab.FillDisk, a.Leader.Lab.FreeDisk)
	there.make(t)
	here.make(t)
	for _, m := range []*fleet.Controller{a.east, a.west} {
		says(t, m, clusterset.ReasonDisconnected)
	}
	must(t, a.Leader.Lab.FreeDisk(t.Context()))
	there.arrived(t, a.west, a.hub)
	here.arrived(t, a.east, a.hub)
	for _, m := range a.members() {
		m.AwaitReady(t)
		a.counted(t, m.ID, "True")
	}
}

// A member's own etcd is full for a while. Imports wait; the others go on.
func TestEtcdOfAMemberIsFull(t *testing.T) {
	a := begin(t)
	here := prepare(t, a.west, a.east, a.hub)
	inject(t, a.east.Lab.FillDisk, a.east.Lab.FreeDisk)
	here.make(t)
	here.arrived(t, a.hub)
	must(t, a.east.Lab.FreeDisk(t.Context()))
	here.arrived(t, a.east)
	a.east.AwaitReady(t)
}

// The clock of one controller is wrong by two days. What it decides does not
// depend on how its clock differs from the others'.
//
// covers: WK-37
func TestClockIsWrong(t *testing.T) {
	for name, offset := range map[string]time.Duration{"fast": 48 * time.Hour, "slow": -48 * time.Hour} {
		t.Run("leader "+name, func(t *testing.T) {
			a := begin(t)
			there := prepare(t, a.east, a.west)
			wrong := a.Replica(t, func(o *leader.Options) { o.ClockOffset = offset })
			replace(t, a.Leader, wrong)
			there.make(t)
			there.arrived(t, a.west, a.hub)
			a.counted(t, "east", "True")
			a.counted(t, "west", "True")
			replace(t, wrong, a.Leader)
			a.counted(t, "east", "True")
		})
		t.Run("member "+name, func(t *testing.T) {
			a := begin(t)
			there, here := prepare(t, a.east, a.west), prepare(t, a.west, a.east)
			wrong := a.Candidate(t, "east", "east", func(o *member.Options) { podIPs(o); o.ClockOffset = offset })
			replace(t, a.east, wrong)
			there.make(t)
			here.make(t)
			there.arrived(t, a.west, a.hub)
			here.arrived(t, a.east)
			a.counted(t, "east", "True")
			a.east.AwaitReady(t)
			replace(t, wrong, a.east)
			a.east.AwaitReady(t)
			a.counted(t, "east", "True")
		})
	}
}

// replace ends one controller and starts another in its place.
func replace(t *testing.T, former, next *fleet.Controller) {
	t.Helper()
	former.Stop(t)
	next.Start(standing.Life())
}

// inject breaks something, until the end of the test at the latest.
func inject(t *testing.T, fault, heal func(context.Context) error) {
	t.Helper()
	must(t, fault(t.Context()))
	t.Cleanup(func() { must(t, heal(context.Background())) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
