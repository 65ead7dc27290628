package replica_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

func standing(c replica.Checkpoint) replica.Standing {
	c.Source, c.Rules, c.Epoch = "s", "r", 1
	return replica.Standing{Fence: replica.Fence{Owner: 5, Mod: 50}, Checkpoint: c}
}

func TestDecide(t *testing.T) {
	steady := replica.Checkpoint{Mode: replica.Steady, Rev: 100}
	torn := replica.Checkpoint{Mode: replica.Torn, Rev: 100, Torn: &replica.Part{Rev: 101, Done: 1, Of: 2}}
	syncing := replica.Checkpoint{Mode: replica.Syncing, Rev: 100, Sync: &replica.Sync{Pin: 200}}
	source := func(rev, compacted int64) replica.Source {
		return replica.Source{ID: "s", Rules: "r", Epoch: 1, Rev: rev, Compacted: compacted}
	}
	changed := func(change func(*replica.Source)) replica.Source {
		s := source(300, 0)
		change(&s)
		return s
	}
	cases := map[string]struct {
		standing replica.Standing
		source   replica.Source
		want     replica.Decision // without Why
		refused  string
	}{
		"an empty target takes everything":          {replica.Standing{}, source(300, 0), replica.Decision{Begin: true}, ""},
		"a steady one goes on":                      {standing(steady), source(300, 0), replica.Decision{Watch: 101}, ""},
		"a torn one gets its revision again":        {standing(torn), source(300, 0), replica.Decision{Watch: 101}, ""},
		"the next revision is the oldest there is":  {standing(steady), source(300, 101), replica.Decision{Watch: 101}, ""},
		"the next revision is gone":                 {standing(steady), source(300, 102), replica.Decision{Begin: true, Since: 100}, ""},
		"a torn revision is gone":                   {standing(torn), source(300, 102), replica.Decision{Begin: true, Since: 100}, ""},
		"a copy goes on":                            {standing(syncing), source(300, 200), replica.Decision{Continue: true}, ""},
		"a copy whose revision is gone keeps since": {standing(syncing), source(300, 201), replica.Decision{Begin: true, Since: 100}, ""},
		"other rules take everything":               {standing(steady), changed(func(s *replica.Source) { s.Rules = "x" }), replica.Decision{Begin: true}, ""},
		"after a promotion nothing counts":          {standing(steady), changed(func(s *replica.Source) { s.Epoch = 2 }), replica.Decision{Begin: true}, ""},
		"another etcd":                              {standing(steady), changed(func(s *replica.Source) { s.ID = "x" }), replica.Decision{}, "this is cluster x"},
		"an older promotion":                        {standing(steady), changed(func(s *replica.Source) { s.Epoch = 0 }), replica.Decision{}, "seen promotion 1"},
		"a restored primary":                        {standing(steady), source(99, 0), replica.Decision{}, "restored from a backup"},
		"a restored primary during a copy":          {standing(syncing), source(199, 0), replica.Decision{}, "restored from a backup"},
		"a restored primary at a torn revision":     {standing(torn), source(100, 0), replica.Decision{}, "restored from a backup"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := replica.Decide(c.standing, c.source)
			if c.refused != "" {
				if refusal.In(err) == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %+v, %v; want it refused for %q", got, err, c.refused)
				}
				return
			}
			if got.Begin != (got.Why != "") {
				t.Errorf("a beginning has a reason, all else has none: %+v", got)
			}
			got.Why = ""
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestSettle(t *testing.T) {
	was := standing(replica.Checkpoint{Mode: replica.Steady, Rev: 100})
	read := func(change func(*replica.Standing)) replica.Standing {
		s := was
		change(&s)
		return s
	}
	deposed, refused := new(replica.DeposedError), new(refusal.Refusal)
	cases := map[string]struct {
		read    replica.Standing
		deposed bool
		refused bool
	}{
		"it did not happen":       {read(func(*replica.Standing) {}), false, false},
		"it happened":             {read(func(s *replica.Standing) { s.Mod, s.Checkpoint.Rev = 51, 101 }), false, false},
		"another owner":           {read(func(s *replica.Standing) { s.Owner = 6 }), true, false},
		"no owner":                {read(func(s *replica.Standing) { s.Owner = 0 }), true, false},
		"the checkpoint is gone":  {read(func(s *replica.Standing) { s.Mod, s.Checkpoint = 0, replica.Checkpoint{} }), false, true},
		"the position went back":  {read(func(s *replica.Standing) { s.Mod, s.Checkpoint.Rev = 51, 99 }), false, true},
		"another source's copy":   {read(func(s *replica.Standing) { s.Mod, s.Checkpoint.Source = 51, "x" }), false, true},
		"a copy of all was begun": {read(func(s *replica.Standing) { s.Mod, s.Checkpoint.Mode, s.Checkpoint.Rev = 51, replica.Syncing, 0 }), false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := was.Settle(c.read)
			if errors.As(err, &deposed) != c.deposed || errors.As(err, &refused) != c.refused {
				t.Fatalf("got %v", err)
			}
			if err == nil && (got.Mod != c.read.Mod || !got.Checkpoint.Equal(c.read.Checkpoint)) {
				t.Errorf("adopted %+v, want what was read", got)
			}
		})
	}
}

// A process that has just become owner knows its fence and nothing else, and
// adopts what it finds only while that fence holds.
//
// covers: D-02
func TestTheFirstLookIsFencedAsWell(t *testing.T) {
	won := replica.Standing{Fence: replica.Fence{Owner: 5}}
	found := standing(replica.Checkpoint{Mode: replica.Steady, Rev: 100})
	deposed := new(replica.DeposedError)
	for _, owner := range []int64{0, 4, 6} {
		found.Owner = owner
		if _, err := won.Settle(found); !errors.As(err, &deposed) {
			t.Errorf("under owner %d: %v", owner, err)
		}
	}
	found.Owner = 5
	if got, err := won.Settle(found); err != nil || got != found {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Surplus goes only when all keys have been seen, and a step of a copy is done
// only in a copy.
//
// covers: M-1
func TestStepsOfACopyHaveTheirTime(t *testing.T) {
	steady := standing(replica.Checkpoint{Mode: replica.Steady, Rev: 100})
	copying := standing(replica.Checkpoint{Mode: replica.Syncing, Sync: &replica.Sync{Pin: 200}})
	scanned := standing(replica.Checkpoint{Mode: replica.Syncing, Sync: &replica.Sync{Pin: 200, Scanned: true}})
	steps := map[string]func(replica.Standing) error{
		"puts": func(s replica.Standing) error {
			_, _, err := replica.Puts(s, replica.Order{}, []replica.Placed{{}}, replica.DefaultLimits)
			return err
		},
		"finish": func(s replica.Standing) error { _, err := replica.FinishPuts(s); return err },
		"deletes": func(s replica.Standing) error {
			_, _, err := replica.Deletes(s, nil, replica.DefaultLimits)
			return err
		},
		"end": func(s replica.Standing) error { _, err := replica.End(s); return err },
	}
	before := map[string]bool{"puts": true, "finish": true}
	for name, step := range steps {
		if step(steady) == nil {
			t.Errorf("%s was done to a steady target", name)
		}
		if (step(copying) == nil) != before[name] || (step(scanned) == nil) == before[name] {
			t.Errorf("%s: before the scan ended %v, after it %v", name, step(copying), step(scanned))
		}
	}
}

// Only a steady target is evidence, may be promoted, and can be healed key by key.
func TestPromotable(t *testing.T) {
	cases := map[string]struct {
		standing replica.Standing
		why      string
	}{
		"nothing":   {replica.Standing{}, "nothing has been copied"},
		"a mixture": {standing(replica.Checkpoint{Mode: replica.Syncing, Sync: &replica.Sync{Pin: 200}}), "revision 200"},
		"a part":    {standing(replica.Checkpoint{Mode: replica.Torn, Rev: 1, Torn: &replica.Part{Rev: 2, Done: 3, Of: 4}}), "3 of 4 changes of revision 2"},
		"a copy":    {standing(replica.Checkpoint{Mode: replica.Steady, Rev: 1}), ""},
	}
	for name, c := range cases {
		err := c.standing.Promotable()
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: got %v, want %q", name, err, c.why)
		}
		if _, cut := c.standing.Cut(); (cut == nil) != (c.why == "") {
			t.Errorf("%s: a comparison is evidence: %v", name, cut)
		}
		if _, _, heal := replica.Heal(c.standing, nil, replica.DefaultLimits); (heal == nil) != (c.why == "") {
			t.Errorf("%s: single keys are healed: %v", name, heal)
		}
	}
}

func TestParseCheckpoint(t *testing.T) {
	for _, want := range []replica.Checkpoint{
		{Source: "s", Epoch: 3, Rules: "r", Mode: replica.Steady, Rev: 9},
		{Source: "s", Mode: replica.Torn, Rev: 9, Torn: &replica.Part{Rev: 10, Done: 1, Of: 2}},
		{Source: "s", Mode: replica.Syncing, Sync: &replica.Sync{Pin: 9, Order: "o", After: replica.Place{Rank: 1, Depth: 2, Key: "/k"}, Scanned: true}},
	} {
		if got, err := replica.ParseCheckpoint(want.Encode()); err != nil || !got.Equal(want) {
			t.Errorf("%s was read as %s, %v", want.Encode(), got.Encode(), err)
		}
	}
	for _, bad := range []string{"", "{}", "x", `{"mode":"other"}`, `{"mode":"torn"}`, `{"mode":"syncing"}`, `{"mode":"torn","rev":5,"torn":{"rev":5,"done":1,"of":2}}`} {
		if _, err := replica.ParseCheckpoint([]byte(bad)); refusal.In(err) == nil {
			t.Errorf("%q was read: %v", bad, err)
		}
	}
}

// A checkpoint that moved is not always by the transaction that was just tried: an
// earlier one, which was given up, may have come late.
func TestResolve(t *testing.T) {
	begun := replica.Begin(replica.Standing{}, replica.Source{ID: "s", Rev: 40}, 40, 12, replica.Order{}).Then
	steady := replica.Checkpoint{Source: "s", Mode: replica.Steady, Rev: 12}
	late := steady
	late.Rev = 13
	s := replica.Standing{Fence: replica.Fence{Owner: 3, Mod: 7}, Checkpoint: steady}
	txn := replica.Txn{If: s.Fence, Then: begun}
	at := func(mod int64, c replica.Checkpoint) replica.Standing {
		return replica.Standing{Fence: replica.Fence{Owner: 3, Mod: mod}, Checkpoint: c}
	}
	for name, c := range map[string]struct {
		read replica.Standing
		want bool
	}{
		"nothing has happened":  {at(7, steady), false},
		"it has happened":       {at(8, begun), true},
		"another one came late": {at(8, late), false},
	} {
		now, happened, err := s.Resolve(txn, c.read)
		if err != nil || happened != c.want || now.Mod != c.read.Mod || !now.Checkpoint.Equal(c.read.Checkpoint) {
			t.Errorf("%s: got %t at %d, %v; want %t at %d", name, happened, now.Mod, err, c.want, c.read.Mod)
		}
	}
	if _, _, err := s.Resolve(txn, replica.Standing{Fence: replica.Fence{Owner: 4, Mod: 8}, Checkpoint: begun}); err == nil {
		t.Error("another owner is taken for this one")
	}
}
