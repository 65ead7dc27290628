package replica_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

// change reads "12 a=1 b-" as revision 12 that writes a and deletes b.
func change(text string) replica.Change {
	words := strings.Fields(text)
	var c replica.Change
	if _, err := fmt.Sscan(words[0], &c.Rev); err != nil {
		panic(err)
	}
	for _, word := range words[1:] {
		if key, isDelete := strings.CutSuffix(word, "-"); isDelete {
			c.Ops = append(c.Ops, replica.Op{Key: key, Delete: true})
			continue
		}
		key, value, _ := strings.Cut(word, "=")
		c.Ops = append(c.Ops, replica.Op{Key: key, Value: []byte(value)})
	}
	return c
}

// describe writes a step as one line.
func describe(s replica.Step) string {
	switch {
	case s.Gap != nil:
		return "gap"
	case s.Txn == nil:
		return "nothing"
	}
	var words []string
	for _, op := range s.Txn.Ops {
		if op.Delete {
			words = append(words, op.Key+"-")
		} else {
			words = append(words, op.Key+"="+string(op.Value))
		}
	}
	c := s.Txn.Then
	words = append(words, fmt.Sprintf("| %s %d", c.Mode, c.Rev))
	if c.Torn != nil {
		words = append(words, fmt.Sprintf("part %d/%d of %d", c.Torn.Done, c.Torn.Of, c.Torn.Rev))
	}
	if s.Idle {
		words = append(words, "idle")
	}
	return strings.Join(words, " ")
}

// covers: M-2
func TestNext(t *testing.T) {
	torn := func(done, of int) replica.Checkpoint {
		return replica.Checkpoint{Mode: replica.Torn, Rev: 10, Torn: &replica.Part{Rev: 11, Done: done, Of: of}}
	}
	steady := replica.Checkpoint{Mode: replica.Steady, Rev: 10}
	cases := map[string]struct {
		checkpoint replica.Checkpoint
		changes    []string
		through    int64
		want       string
	}{
		"nothing new":                             {steady, nil, 10, "nothing"},
		"only local changes move the checkpoint":  {steady, nil, 15, "| steady 15 idle"},
		"whole revisions are merged":              {steady, []string{"11 a=1", "12 b=1"}, 15, "a=1 b=1 | steady 15"},
		"the last write of a key, at its place":   {steady, []string{"11 a=1 b=1", "12 a=2", "13 b-"}, 13, "a=2 b- | steady 13"},
		"a revision that does not fit waits":      {steady, []string{"11 a=1 b=1", "12 c=1 d=1"}, 20, "a=1 b=1 | steady 11"},
		"one that writes the same keys fits":      {steady, []string{"11 a=1 b=1 c=1", "12 a=2 b=2 c=2"}, 20, "a=2 b=2 c=2 | steady 20"},
		"a large revision is torn, and alone":     {steady, []string{"11 a=1 b=1 c=1 d=1", "12 e=1"}, 20, "a=1 b=1 c=1 | torn 10 part 3/4 of 11"},
		"its last part is a whole revision":       {torn(3, 4), []string{"11 a=1 b=1 c=1 d=1", "12 e=1"}, 20, "d=1 | steady 11"},
		"a part in the middle":                    {torn(3, 7), []string{"11 a=1 b=1 c=1 d=1 e=1 f=1 g=1"}, 11, "d=1 e=1 f=1 | torn 10 part 6/7 of 11"},
		"a torn revision is waited for":           {torn(3, 4), nil, 10, "nothing"},
		"a torn revision that does not come":      {torn(3, 4), nil, 11, "gap"},
		"a torn revision that is another one":     {torn(3, 4), []string{"11 a=1 b=1 c=1"}, 11, "gap"},
		"another revision in place of a torn one": {torn(3, 4), []string{"12 a=1 b=1 c=1 d=1"}, 12, "gap"},
		"a mixture is not continued":              {replica.Checkpoint{Mode: replica.Syncing, Sync: &replica.Sync{Pin: 9}}, []string{"11 a=1"}, 11, "gap"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			q := replica.Queue{Through: c.through}
			for _, text := range c.changes {
				q.Changes = append(q.Changes, change(text))
			}
			got := replica.Next(standing(c.checkpoint), q, replica.Limits{Ops: 4, Bytes: 1 << 20})
			if diff := cmp.Diff(c.want, describe(got)); diff != "" {
				t.Error(diff)
			}
			if got.Txn != nil && got.Txn.If != (replica.Fence{Owner: 5, Mod: 50}) {
				t.Errorf("the transaction compares %+v", got.Txn.If)
			}
		})
	}
}

func put(key, value string) replica.Event {
	return replica.Event{KV: replica.KV{Key: key, Value: []byte(value)}}
}

func TestQueue(t *testing.T) {
	var rules selection.Rules
	q := replica.Start(replica.Checkpoint{Rev: 10})
	revision := func(rev int64, events ...replica.Event) replica.Batch {
		return replica.Batch{Through: rev, Revisions: []replica.Revision{{Rev: rev, Events: events}}}
	}
	add := func(b replica.Batch) error {
		var err error
		q, err = q.Add(rules, b)
		return err
	}
	for _, b := range []replica.Batch{
		revision(11, put("/registry/secrets/shop/a", "{}"), put("/registry/leases/shop/a", "{}")),
		revision(11, put("/registry/secrets/shop/a", "{}"), put("/registry/leases/shop/a", "{}")), // repeated
		revision(9, put("/registry/secrets/shop/old", "{}")),                                      // from before the start
		revision(12, put("/registry/leases/shop/a", "{}")),                                        // local alone
		{Through: 20},
	} {
		if err := add(b); err != nil {
			t.Fatal(err)
		}
	}
	if len(q.Changes) != 1 || q.Changes[0].Rev != 11 || len(q.Changes[0].Ops) != 1 || q.Through != 20 || q.Local != 2 {
		t.Errorf("the queue is %+v", q)
	}
	gap := new(replica.GapError)
	if err := add(revision(15, put("/registry/secrets/shop/a", "{}"))); !errors.As(err, &gap) {
		t.Errorf("a revision that came too late gave %v", err)
	}
	if q = q.Drop(replica.Checkpoint{Rev: 11}); len(q.Changes) != 0 {
		t.Errorf("what the target has stays in the queue: %+v", q)
	}
}

// Whose an object is decides about its deletion as well, by what it was.
func TestDeletionIsJudgedByWhatWasDeleted(t *testing.T) {
	const key = "/registry/cluster.x-k8s.io/machines/cpaas-system/m"
	global := []byte(`{"metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"global"}}}`)
	west := []byte(`{"metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"west"}}}`)
	cases := map[string]struct {
		event replica.Event
		ops   int
		gap   bool
	}{
		"a machine of a workload cluster goes":         {replica.Event{KV: replica.KV{Key: key}, Deleted: true, Prev: west}, 1, false},
		"one of this side's own is left":               {replica.Event{KV: replica.KV{Key: key}, Deleted: true, Prev: global}, 0, false},
		"what it was has been compacted":               {replica.Event{KV: replica.KV{Key: key}, Deleted: true}, 0, true},
		"a key that needs no object needs none":        {replica.Event{KV: replica.KV{Key: "/registry/leases/a/b"}, Deleted: true}, 0, false},
		"an empty value is known":                      {replica.Event{KV: replica.KV{Key: key}, Deleted: true, Prev: []byte{}}, 1, false},
		"one that becomes this side's own is left too": {replica.Event{KV: replica.KV{Key: key, Value: global}, Prev: west}, 0, false},
		"one that stops being so is written":           {replica.Event{KV: replica.KV{Key: key, Value: west}, Prev: global}, 1, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, _, err := replica.Select(selection.Rules{}, replica.Revision{Rev: 1, Events: []replica.Event{c.event}})
			gap := new(replica.GapError)
			if errors.As(err, &gap) != c.gap || len(got.Ops) != c.ops {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// The probe finds any limit, within twice its logarithm.
func TestProbe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(3, 10000).Draw(t, "limit")
		var p replica.Probe
		for tries := 0; ; tries++ {
			n, done := p.Next()
			if done {
				break
			}
			if tries > 30 {
				t.Fatalf("still not found: %+v", p)
			}
			p = p.Tell(n, n <= limit)
		}
		if want := min(limit, 8192); p.Works != want {
			t.Fatalf("found %d, want %d", p.Works, want)
		}
	})
}

func TestRejected(t *testing.T) {
	txn := func(ops int) replica.Txn { return replica.Txn{Ops: make([]replica.Op, ops)} }
	cases := map[string]struct {
		txn  replica.Txn
		why  replica.Rejection
		want int // of the limit that is meant; 0: refused
	}{
		"half of what was tried":               {txn(63), replica.TooManyOps, 32},
		"never less than a step needs":         {txn(3), replica.TooManyOps, 3},
		"one operation cannot be made less":    {txn(1), replica.TooManyOps, 0},
		"half of the bytes":                    {txn(2), replica.TooLarge, txn(2).Size().Bytes / 2},
		"one value cannot be made smaller":     {txn(1), replica.TooLarge, 0},
		"nor can the checkpoint":               {txn(0), replica.TooLarge, 0},
		"more than the limit that was thought": {txn(999), replica.TooManyOps, 64},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			limits, err := replica.DefaultLimits.Rejected(c.txn, c.why)
			got := limits.Ops
			if c.why == replica.TooLarge {
				got = limits.Bytes
			}
			if c.want == 0 != (err != nil) || err == nil && got != c.want {
				t.Errorf("got %+v, %v; want %d", limits, err, c.want)
			}
		})
	}
}
