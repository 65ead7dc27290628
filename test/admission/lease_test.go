package admission_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// judged is longer than the silence after which a Lease has ended.
const judged = 12 * time.Second

// While all replicas of the leader are away, renewals are refused and heartbeats
// too. Nobody is told as silent or as lost by that, neither then nor when a replica
// has led for long enough to judge.
//
// covers: ADM-LS-1
func TestARestartLosesNobody(t *testing.T) {
	a := newArena(t, "LOCKSTEP_ALLOW_LOOPBACK=true")
	a.DeployMember(t, "leader", func(_ config.Role, o *config.Options) { o.Admission = true })
	renewed := func(name string) (time.Time, error) {
		var found coordinationv1.Lease
		err := a.Leader.Get(t.Context(), types.NamespacedName{Namespace: area, Name: name}, &found)
		if err != nil || found.Spec.RenewTime == nil {
			return time.Time{}, errors.Join(err, fmt.Errorf("it was never renewed"))
		}
		return found.Spec.RenewTime.Time, nil
	}
	own := identity.LeaseName("leader")
	fleet.Eventually(t, "the member renews its Lease through the webhook", func() error { _, err := renewed(own); return err })
	if err := a.Leader.Lab.Kill(t.Context(), area+"/antrea-mc-controller"); err != nil {
		t.Fatal(err)
	}
	killed, led := time.Now(), time.Time{}
	fleet.Within(t, 3*time.Minute, "a leader has led for a while and the member is heard", func() error {
		a.nobodyIsLost(t)
		election, err := renewed("lockstep-leader")
		if err != nil || election.Before(killed) {
			return errors.Join(err, fmt.Errorf("nobody leads since %s", election))
		}
		if led.IsZero() {
			led = election
		}
		if last, err := renewed(own); err != nil || last.Before(led.Add(judged)) {
			return errors.Join(err, fmt.Errorf("a replica leads since %s, the member was heard at %s", led, last))
		}
		return nil
	})
}

// nobodyIsLost ends the test when the leader tells of a silent member.
func (a *arena) nobodyIsLost(t *testing.T) {
	t.Helper()
	var announces v1alpha1.MemberClusterAnnounceList
	var imports v1alpha1.ResourceImportList
	for _, list := range []client.ObjectList{&announces, &imports} {
		if err := a.Leader.List(t.Context(), list, client.InNamespace(area)); err != nil {
			t.Logf("looking again after: %v", err)
			return
		}
	}
	for _, m := range announces.Items {
		if since, ok := m.Annotations[v1alpha1.AnnotationSilentSince]; ok {
			t.Fatalf("%s is told as silent since %s", m.Name, since)
		}
	}
	for _, i := range imports.Items {
		if i.Spec.Kind == v1alpha1.KindMemberLoss {
			t.Fatalf("a loss is told: %v", i.Annotations)
		}
	}
}
