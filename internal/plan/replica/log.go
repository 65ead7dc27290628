package replica

import "fmt"

// Log is how far a source's raft log was when it was looked at. It tells a
// restored source from one that only went on: a restore keeps the keys with their
// revisions, and cluster and member IDs are those of before when URLs and token
// are, but the log begins anew.
type Log struct {
	// Term of a quorum. It never falls in the life of a cluster.
	Term uint64 `json:"term,omitempty"`
	// Index counts the entries that have been applied; 0: nobody said.
	Index uint64 `json:"index,omitempty"`
	// Rev is the revision beside it.
	Rev int64 `json:"rev,omitempty"`
}

// excess is how many entries made no revision. Each revision takes an entry of
// its own, so it never falls. A restore begins a log of a few entries below the
// revision of the backup, or one that was raised by --bump-revision: an excess far
// below zero, which other entries would need the life of the cluster to make up.
func (l Log) excess() int64 { return int64(l.Index) - l.Rev }

// noted is what a checkpoint keeps of a source: a revision that was read after the
// index, so that the excess is not more than it was.
func (s Source) noted() Log { return Log{Term: s.Log.Term, Index: s.Log.Index, Rev: s.Rev} }

// Restored is why a source is not the one, further on, whose log was noted; empty
// when nothing speaks against it. Of source, Log.Rev was read before Log.Index, so
// its excess is not less than it is. A member that lags behind the noted revision
// tells nothing.
func (l Log) Restored(source Source) string {
	is := source.Log
	switch {
	case is.Term != 0 && is.Term < l.Term:
		return fmt.Sprintf("its raft term is %d, and was %d", is.Term, l.Term)
	case l.Index != 0 && is.Index != 0 && is.Rev > l.Rev && is.excess() < l.excess():
		return fmt.Sprintf("its raft log has %d entries at revision %d, and had %d at revision %d", is.Index, is.Rev, l.Index, l.Rev)
	}
	return ""
}

// Lost is why a source that is looked at again is not the same, further on; empty
// when nothing speaks against it.
func (s Source) Lost(now Source) string {
	switch {
	case now.ID != s.ID:
		return fmt.Sprintf("it is etcd cluster %s, and was %s", now.ID, s.ID)
	case now.Rev < s.Rev:
		return fmt.Sprintf("it is at revision %d, and was at %d", now.Rev, s.Rev)
	}
	return s.noted().Restored(now)
}

// Noting has the next transaction note where the source's log is now, once Decide
// has found that it is the same source.
func (s Standing) Noting(source Source) Standing {
	if s.Mod != 0 && source.Log.Index != 0 {
		log := source.noted()
		s.Checkpoint.Log = &log
	}
	return s
}
