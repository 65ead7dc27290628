package scenario_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// beat is the time between two heartbeats of a test's member, and late the age at
// which one counts as missed. That is told, as it should be; slack is how much of it a test cannot see, because it
// and the controllers do not look at the same moment.
const (
	beat  = time.Duration(fleet.IntervalScale * float64(clusterset.HeartbeatEvery))
	late  = time.Duration(fleet.IntervalScale * float64(clusterset.BeatTimeout))
	slack = 500 * time.Millisecond
)

// still sees that nothing but signs of life is written while something happens
// that changes nothing. On a machine so busy that a member was not heard for as
// long as one that is gone, its silence is written and says nothing about the
// rest: then it is done once more.
func still(t *testing.T, f *fleet.Fleet, members []*fleet.Controller, what string, happens func()) {
	t.Helper()
	everyone := []*fleet.Cluster{f.Leader.Cluster}
	for _, m := range members {
		everyone = append(everyone, m.Cluster)
	}
	const tries = 5
	for range tries {
		settle(t, f, everyone)
		before, silence := writesOf(t, everyone), listen(t, f, members)
		happens()
		var written []error
		for i, after := range writesOf(t, everyone) {
			if err := after.Since(before[i]); err != nil {
				written = append(written, fmt.Errorf("%s, in cluster %s: %w", what, everyone[i].Name, err))
			}
		}
		longest, err := silence(), errors.Join(written...)
		switch {
		case err == nil:
			return
		case longest < late-slack:
			t.Error(err)
			return
		}
		t.Logf("a member was not heard for %s, so once more: %v", longest, err)
	}
	t.Errorf("%s: this machine is too busy to tell; in each of %d tries a member was not heard for %s", what, tries, late-slack)
}

// listen measures for how long at most nothing new was heard of a member, until
// it is asked.
func listen(t *testing.T, f *fleet.Fleet, members []*fleet.Controller) (longest func() time.Duration) {
	t.Helper()
	done := make(chan struct{})
	var listening sync.WaitGroup
	silences := make([]time.Duration, len(members))
	for i, m := range members {
		listening.Go(func() {
			heard, last := time.Now().Add(-beat), touch(t, f, m.ID) // the last one was sent then, at the earliest
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for {
				silences[i] = max(silences[i], time.Since(heard))
				if now := touch(t, f, m.ID); now != "" && now != last {
					heard, last = time.Now(), now
				}
				select {
				case <-done:
					return
				case <-t.Context().Done(): // the test ended before it asked
					return
				case <-tick.C:
				}
			}
		})
	}
	return func() (most time.Duration) {
		close(done)
		listening.Wait()
		for _, silence := range silences {
			most = max(most, silence)
		}
		return most
	}
}

// touch is the last heartbeat of a member; empty when it cannot be read.
func touch(t *testing.T, f *fleet.Fleet, id string) string {
	t.Helper()
	announce, err := f.Announce(t, id)
	if err != nil {
		return ""
	}
	return announce.Annotations[v1alpha1.AnnotationTouch]
}

// restart starts all controllers again, and returns when they are at work.
func restart(t *testing.T, f *fleet.Fleet, members []*fleet.Controller) {
	t.Helper()
	f.Leader.Restart(t)
	for _, m := range members {
		m.Restart(t)
	}
	for _, m := range members {
		beats(t, f, m.ID, 3)
	}
}

// writesOf counts what controllers of ours may write, but for signs of life: in
// the leader cluster announces, in member clusters the note of the last one, once
// in six heartbeats, on the ClusterSet.
func writesOf(t *testing.T, in []*fleet.Cluster) []fleet.Writes {
	t.Helper()
	var counts []fleet.Writes
	for _, c := range in {
		ours := []string{
			"services", "endpoints", "endpointslices", "serviceexports", "serviceimports", "resourceexports", "resourceimports",
			"gateways", "clusterinfoimports", "namespaces", "events", "clusternetworkpolicies", "labelidentities",
		}
		if c.Name == "leader" {
			ours = append(ours, "clustersets")
		}
		counts = append(counts, c.Writes(t, ours...))
	}
	return counts
}

// settle waits until the API servers have not been written to for a second, and
// no clock is about to bring a write: every member either beat meanwhile or is
// known not to. One that was played by a test and never beats is told of only
// when its time is over, and that would fall into whatever comes next.
func settle(t *testing.T, f *fleet.Fleet, in []*fleet.Cluster) {
	t.Helper()
	var last []fleet.Writes
	var since time.Time
	var touches map[string]string
	fleet.Eventually(t, "the clusters are quiet", func() error {
		now := writesOf(t, in)
		if diff := cmp.Diff(last, now); diff != "" {
			last, since, touches = now, time.Now(), map[string]string{}
		}
		set, err := f.Leader.ReadSet(t)
		if err != nil {
			return err
		}
		for _, member := range set.Status.ClusterStatuses {
			id := member.ClusterID
			heard, looked := touches[id]
			switch {
			case len(member.Conditions) > 0 && member.Conditions[0].Status == corev1.ConditionFalse:
			case !looked:
				touches[id] = touch(t, f, id)
				fallthrough
			case touch(t, f, id) == heard:
				err = errors.Join(err, fmt.Errorf("%q has not beaten since", id))
			}
		}
		if quiet := time.Since(since); quiet < time.Second {
			err = errors.Join(err, fmt.Errorf("quiet for %s", quiet))
		}
		return err
	})
}
