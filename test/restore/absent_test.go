package restore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// What a member exported stays in the others while it is away, although the
// leader's backup knows nothing of it; until it is back, or an administrator
// accepts the backup.
func TestAbsentMemberKeepsTheHold(t *testing.T) {
	whole := t // what is started in one part goes on in the next
	p := newPair(t, "absent")
	ns := p.namespace
	p.export(t, p.east, "old1")
	p.export(t, p.west, "w1")
	p.awaitAll(t, []string{"old1"}, []string{"w1"})
	p.snapshot(t, p.Leader, "absent")
	p.export(t, p.east, "new1")
	p.export(t, p.west, "w2")
	p.awaitAll(t, []string{"old1", "new1"}, []string{"w1", "w2"})

	east, west := p.east.Watch(t, ns, "w1", "w2"), p.west.Watch(t, ns, "old1", "new1")
	undisturbed := func() error {
		if err := east.Check(); err != nil {
			return err
		}
		return west.Check()
	}

	t.Run("nobody is there to see the restore", func(t *testing.T) {
		for _, m := range p.members() {
			p.awaitStored(t, m)
		}
		p.east.Stop(t)
		p.west.Stop(t)
		p.restoreLeader(t, "absent", 1_000_000)
		p.west.Start(whole)
		awaitHeld(t, p.west)
		p.west.AwaitImport(t, ns, "new1", map[string][]string{"east": {p.clusterIP(t, "new1")}})
	})
	t.Run("a member restarted in the hold goes on with it", func(t *testing.T) {
		p.west.Restart(whole)
		awaitHeld(t, p.west)
		fleet.Eventually(t, "west names whom it waits for", func() error {
			set, err := p.west.ReadSet(t)
			if err == nil && !strings.Contains(set.Status.Conditions[0].Message, "everything of east is published again") {
				err = fmt.Errorf("it says %q", set.Status.Conditions[0].Message)
			}
			return err
		})
		fleet.Steadily(t, 3*time.Second, "west holds what east exported", func() error {
			if memoryOf(t, p.west).HoldSince == nil {
				return errEnded
			}
			return undisturbed()
		})
	})
	t.Run("the absent one returns", func(t *testing.T) {
		p.east.Start(whole)
		awaitNoticed(t, p.east, east)
		for _, m := range p.members() {
			awaitTrust(t, m)
		}
		p.awaitAll(t, []string{"old1", "new1"}, []string{"w1", "w2"})
		p.awaitMerged(t)
		if err := undisturbed(); err != nil {
			t.Error(err)
		}
	})
	t.Run("an administrator does not wait for it", func(t *testing.T) {
		p.awaitBeats(t)
		p.east.Stop(t)
		p.restoreLeader(t, "absent", 0)
		awaitHeld(t, p.west)
		fleet.Eventually(t, "west has exported again", func() error { return p.checkMerged(t.Context()) })
		if err := undisturbed(); err != nil {
			t.Error(err)
		}
		west.Release("new1")
		uid := string(memoryOf(t, p.west).ClusterSetUID)
		p.west.ChangeSet(t, func(s *v1alpha2.ClusterSet) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.AnnotationAcceptLeader, uid)
		})
		p.west.AwaitNoImport(t, ns, "new1")
		awaitTrust(t, p.west)
		if set, err := p.west.ReadSet(t); err != nil || set.Annotations[v1alpha1.AnnotationAcceptLeader] != "" {
			t.Errorf("the confirmation stays for the next time: %v, %v", set.Annotations, err)
		}
		if err := undisturbed(); err != nil {
			t.Error(err)
		}
		p.east.Start(whole)
		p.awaitAll(t, []string{"old1", "new1"}, []string{"w1", "w2"})
		awaitTrust(t, p.east)
	})
	east.Verdict(t)
	west.Verdict(t)
}
