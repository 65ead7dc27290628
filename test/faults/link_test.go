package faults_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/internal/lab/relay"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// The link of one member is cut, both ways. Both sides go on with what they had,
// the others with each other, and what happened meanwhile arrives afterwards.
// covers: WK-3
func TestLinkIsCut(t *testing.T) {
	for name, how := range map[string]relay.Cut{"silent": relay.Silent, "refused": relay.Refused} {
		t.Run(name, func(t *testing.T) {
			a := begin(t)
			there, here := prepare(t, a.east, a.west, a.hub), prepare(t, a.west, a.east, a.hub)
			a.east.Cut(t, how)
			there.make(t)
			here.make(t)
			here.arrived(t, a.hub)
			says(t, a.east, clusterset.ReasonDisconnected)
			a.counted(t, "east", "False")
			a.counted(t, "west", "True")
			there.unseen(t, a.west)
			here.unseen(t, a.east)
			a.east.Heal(t)
			there.arrived(t, a.west, a.hub)
			here.arrived(t, a.east)
			a.east.AwaitReady(t)
			a.counted(t, "east", "True")
		})
	}
}

// A round trip takes 400 ms and one packet of a hundred is lost. Everything
// arrives, only later.
func TestLinkIsSlow(t *testing.T) {
	a := begin(t)
	there, here := prepare(t, a.east, a.west), prepare(t, a.west, a.east)
	if err := a.Lab.Slow(t.Context(), "east", "leader", 200*time.Millisecond, 0.01); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Lab.Heal(context.Background(), "east", "leader"); err != nil {
			t.Error(err)
		}
	})
	there.make(t)
	here.make(t)
	there.arrived(t, a.west, a.hub)
	here.arrived(t, a.east, a.hub)
	a.east.AwaitExport(t, namespace, there.fresh, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	// A new process has to list everything over that link.
	a.east.Restart(standing.Life())
	a.east.AwaitReady(t)
	a.awaitKept(t, a.east)
}

// One member starts while its leader cannot be reached: it serves what it had,
// and says so. The others do not notice.
// covers: MEM-ST-2
func TestLeaderIsUnreachableAtTheStart(t *testing.T) {
	for name, how := range map[string]relay.Cut{"silent": relay.Silent, "refused": relay.Refused} {
		t.Run(name, func(t *testing.T) {
			a := begin(t)
			there, here := prepare(t, a.east, a.west), prepare(t, a.west, a.east, a.hub)
			a.east.Stop(t)
			a.east.Cut(t, how)
			a.east.Start(standing.Life())
			there.make(t)
			here.make(t)
			here.arrived(t, a.hub)
			// Its loops run: they tell of the new export that it is on its way.
			a.east.AwaitExport(t, namespace, there.fresh, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionUnknown, mcsv1beta1.ServiceExportReasonPending)
			says(t, a.east, clusterset.ReasonDisconnected)
			here.unseen(t, a.east)
			a.east.Heal(t)
			there.arrived(t, a.west, a.hub)
			here.arrived(t, a.east)
			a.east.AwaitReady(t)
		})
	}
}

// One member of three is away while the leader starts: the leader serves the
// others at once, and tells of that one.
// covers: WK-28
func TestMemberIsUnreachableAtTheStart(t *testing.T) {
	a := begin(t)
	here := prepare(t, a.west, a.east, a.hub)
	a.east.Stop(t)
	a.Leader.Restart(standing.Life())
	here.make(t)
	here.arrived(t, a.hub)
	a.counted(t, "east", "False")
	a.counted(t, "west", "True")
	a.counted(t, "hub", "True")
	here.unseen(t, a.east)
	a.east.Start(standing.Life())
	here.arrived(t, a.east)
	a.counted(t, "east", "True")
}
