package scenario_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// An upstream leader that comes back from a backup says nothing of it, and its
// members say nothing of what they export. The announce tells of the backup, and
// only an administrator ends the hold.
func TestUpstreamLeaderFromABackup(t *testing.T) {
	f := fleet.UnderUpstream(t, clusters.Lab(t), nameOf(t))
	west := f.Candidate(t, "west", "west")
	west.Start(t)
	west.Request(t)
	t.Cleanup(func() { west.Discard(t, west.Set()) })
	fleet.Eventually(t, "west announces itself", func() error { _, err := f.Announce(t, "west"); return err })
	f.Answer(t, "west")
	west.AwaitReady(t)
	ns := namespaceOf(t, west.Cluster)
	lost, lostEndpoints := f.Offer(t, "lost", ns, "lost", ports, "10.58.9.1")
	f.Offer(t, "kept", ns, "kept", ports, "10.58.9.2")
	for name, address := range map[string]string{"lost": "10.58.9.1", "kept": "10.58.9.2"} {
		west.AwaitImport(t, ns, name, map[string][]string{"": {address}})
	}
	beats(t, f, "west", 2)
	seen := west.Watch(t, ns, "lost", "kept")

	announce := named(&v1alpha1.MemberClusterAnnounce{}, f.Area, "member-announce-from-west")
	f.Leader.Change(t, announce, func() {
		metav1.SetMetaDataAnnotation(&announce.ObjectMeta, v1alpha1.AnnotationTouch, time.Now().Add(-time.Hour).Format(time.RFC3339))
	})
	fleet.Eventually(t, "west holds withdrawals", func() error {
		if !seen.SawReason(clusterset.ReasonLeaderRestored) {
			return errors.New("it did not say so")
		}
		return nil
	})
	for _, object := range []client.Object{lost, lostEndpoints} {
		if err := f.Leader.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	beats(t, f, "west", 3)
	set, err := west.ReadSet(t)
	if err != nil {
		t.Fatal(err)
	}
	memory := clusterset.ReadMemory(set.Annotations)
	if memory.HoldSince == nil || seen.Check() != nil {
		t.Fatalf("west remembers %+v; %v", memory, seen.Check())
	}
	seen.Release("lost")
	west.ChangeSet(t, func(s *v1alpha2.ClusterSet) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.AnnotationAcceptLeader, clusterset.Acceptance(memory))
	})
	west.AwaitNoImport(t, ns, "lost")
	fleet.Eventually(t, "west trusts the leader", func() error {
		set, err := west.ReadSet(t)
		if err != nil || clusterset.ReadMemory(set.Annotations).HoldSince != nil || set.Annotations[v1alpha1.AnnotationAcceptLeader] != "" {
			return fmt.Errorf("the annotations are %v (%w)", set.Annotations, err)
		}
		return west.CheckCondition(t, "True", "")
	})
	seen.Verdict(t)
}
