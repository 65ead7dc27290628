package replica_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// A source that was restored is told by its log, also where its revision is
// beyond the one that was copied; one that only went on is not.
//
// covers: D-02
func TestRestoredByItsLog(t *testing.T) {
	noted := replica.Log{Term: 4, Index: 1200, Rev: 1000}
	for name, c := range map[string]struct {
		source replica.Source
		want   string
	}{
		"it went on":                            {replica.Source{Rev: 1500, Log: replica.Log{Term: 5, Index: 1800, Rev: 1500}}, ""},
		"one entry for each revision":           {replica.Source{Rev: 1500, Log: replica.Log{Term: 4, Index: 1700, Rev: 1500}}, ""},
		"nobody said":                           {replica.Source{Rev: 1500}, ""},
		"a member that lags behind":             {replica.Source{Rev: 1001, Log: replica.Log{Term: 4, Index: 1100, Rev: 950}}, ""},
		"restored, and its revision was raised": {replica.Source{Rev: 1000900, Log: replica.Log{Term: 4, Index: 12, Rev: 1000900}}, "raft log has 12 entries"},
		"restored, and written on":              {replica.Source{Rev: 1300, Log: replica.Log{Term: 4, Index: 405, Rev: 1300}}, "raft log has 405 entries"},
		"restored where the index is secret":    {replica.Source{Rev: 1300, Log: replica.Log{Term: 2}}, "raft term is 2"},
	} {
		standing := replica.Standing{Fence: replica.Fence{Owner: 1, Mod: 7}, Checkpoint: replica.Checkpoint{Source: "s", Mode: replica.Steady, Rev: 1000, Log: &noted}}
		c.source.ID = "s"
		_, err := replica.Decide(standing, c.source)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "restored from a backup")):
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// Whatever a cluster does, it is never taken for a restored one, however its
// members answer; and once restored it is, from the first new revision on.
func TestLogOfALiveClusterNeverFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		term, index, rev := uint64(2), uint64(rapid.IntRange(3, 9).Draw(t, "members")), int64(1)
		type at struct {
			index uint64
			rev   int64
		}
		past := []at{{index, rev}}
		live := func(label string, least int) {
			for range rapid.IntRange(least, 60).Draw(t, label) {
				index++
				switch rapid.SampledFrom([]string{"revision", "revision", "other", "election"}).Draw(t, "entry") {
				case "revision":
					rev++
				case "election":
					term++
				}
				past = append(past, at{index, rev})
			}
		}
		// look is an answer: the revision was read before the index, and the quorum's after both.
		look := func() replica.Source {
			i := rapid.IntRange(0, len(past)-1).Draw(t, "answers")
			j := rapid.IntRange(i, len(past)-1).Draw(t, "a moment later")
			return replica.Source{ID: "s", Rev: rev, Log: replica.Log{Term: term, Index: past[j].index, Rev: past[i].rev}}
		}
		live("before", 1)
		s := replica.Standing{}.Happened(replica.Begin(replica.Standing{}, look(), rev, 0, replica.Order{}), 5)
		noted := *s.Checkpoint.Log
		live("after", 0)
		if why := noted.Restored(look()); why != "" {
			t.Fatalf("noted %+v, and the same cluster was called restored: %s", noted, why)
		}
		// A backup of some moment, restored with a log of its own, and written on.
		noted = replica.Log{Term: term, Index: index, Rev: rev}
		backup := past[rapid.IntRange(0, len(past)-1).Draw(t, "backup")].rev
		bump := rapid.SampledFrom([]int64{0, 1000}).Draw(t, "bump")
		written := max(0, rev-backup-bump) + int64(rapid.IntRange(1, 20).Draw(t, "written since"))
		is := replica.Log{Term: 2, Index: uint64(3 + written), Rev: backup + bump + written}
		if backup > 1 && noted.Restored(replica.Source{Rev: is.Rev, Log: is}) == "" {
			t.Fatalf("noted %+v, restored to %+v, and nobody says so", noted, is)
		}
	})
}
