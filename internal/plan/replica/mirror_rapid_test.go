package replica_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// errCrash is a process that ends; all it knew is lost.
var errCrash = errors.New("crash")

// process is a mirror as small as it can be: every decision is the plan's.
type process struct {
	t        *rapid.T
	source   *source
	target   *target
	standing replica.Standing
	queue    replica.Queue
	limits   replica.Limits
	watching bool
	// late are transactions whose answer was lost while they were on their way.
	late *[]replica.Txn
	calm bool // no faults any more
	// liar: the server says now and then that all has been delivered, and it has not.
	liar bool
	sent int64 // the last revision that was delivered
}

// start reads all there is to know.
func (p *process) start() {
	p.standing, p.watching = p.target.read(), false
	p.limits = replica.Limits{Ops: 128, Bytes: replica.DefaultLimits.Bytes}
}

// step does one thing.
func (p *process) step() error {
	if !p.watching {
		return p.decide()
	}
	if err := p.receive(); err != nil {
		return err
	}
	step := replica.Next(p.standing, p.queue, p.limits)
	switch {
	case step.Gap != nil:
		return p.gap(step.Gap)
	case step.Txn == nil:
		return nil
	}
	return p.write(*step.Txn)
}

func (p *process) about() replica.Source {
	return replica.Source{ID: "s", Rules: rules.Digest(), Rev: p.source.rev, Compacted: p.source.compacted}
}

func (p *process) decide() error {
	decision, err := replica.Decide(p.standing, p.about())
	switch {
	case err != nil:
		return err
	case decision.Begin:
		return p.write(replica.Begin(p.standing, p.about(), p.source.rev, decision.Since, replica.Order{}))
	case decision.Continue:
		return p.copy()
	}
	p.queue, p.watching, p.sent = replica.Start(p.standing.Checkpoint), true, decision.Watch-1
	return nil
}

// gap compares instead of watching on. Nothing is lost by a copy of what
// changed since the last whole revision.
func (p *process) gap(gap *replica.GapError) error {
	p.watching = false
	return p.write(replica.Begin(p.standing, p.about(), p.source.rev, gap.From(p.standing.Checkpoint), replica.Order{}))
}

// receive takes some of what the watch has; with repetitions, as some servers do.
func (p *process) receive() error {
	from, most := p.sent, len(p.source.history)
	if !p.calm {
		most = rapid.IntRange(0, 4).Draw(p.t, "delivered")
		from -= int64(rapid.IntRange(0, 2).Draw(p.t, "repeated"))
	}
	if p.sent+1 < p.source.compacted {
		p.watching = false // the watch ends with an error
		return nil
	}
	var batch replica.Batch
	for _, revision := range p.source.history {
		if revision.Rev > from && len(batch.Revisions) < most {
			batch.Revisions = append(batch.Revisions, revision)
			batch.Through = revision.Rev
			p.sent = max(p.sent, revision.Rev)
		}
	}
	if p.liar && !p.calm && rapid.IntRange(0, 3).Draw(p.t, "lies") == 0 {
		batch.Through, p.source.lied = p.source.rev, true
	}
	if all := p.source.history; len(all) == 0 || batch.Through == all[len(all)-1].Rev || p.calm {
		batch.Through = p.source.rev
	}
	queue, err := p.queue.Add(rules, batch)
	p.queue = queue
	if gap := new(replica.GapError); errors.As(err, &gap) {
		return p.gap(gap)
	}
	return err
}

// copy does one transaction of a copy.
func (p *process) copy() error {
	sync := p.standing.Checkpoint.Sync
	pinned := p.source.states[sync.Pin]
	if !sync.Scanned {
		return p.copyKeys(pinned, *sync)
	}
	var surplus []replica.KV
	for kv, err := range replica.Surplus(rules, sorted(pinned), sorted(p.target.kvs)) {
		if err != nil {
			return err
		}
		if replica.Mirrored(rules, kv.Key, kv.Value) {
			surplus = append(surplus, kv)
		}
	}
	if len(surplus) == 0 {
		return p.must(replica.End(p.standing))
	}
	txn, _, err := replica.Deletes(p.standing, surplus, p.limits)
	return p.must(txn, err)
}

func (p *process) copyKeys(pinned map[string]replica.KV, sync replica.Sync) error {
	var index replica.Memory
	for _, kv := range pinned {
		if kv.Mod > p.standing.Checkpoint.Rev && replica.Mirrored(rules, kv.Key, kv.Value) {
			if err := index.Add(replica.Order{}.Place(kv)); err != nil {
				return err
			}
		}
	}
	var next []replica.Placed
	for place := range index.After(sync.From(replica.Order{})) {
		next = append(next, replica.Placed{Place: place, Value: pinned[place.Key].Value})
	}
	if len(next) == 0 {
		return p.must(replica.FinishPuts(p.standing))
	}
	txn, _, err := replica.Puts(p.standing, replica.Order{}, next, p.limits)
	return p.must(txn, err)
}

func (p *process) must(txn replica.Txn, err error) error {
	if err != nil {
		return err
	}
	return p.write(txn)
}

// write tries a transaction, and everything can happen to it.
func (p *process) write(txn replica.Txn) error {
	if why := p.target.rejects(txn); why != "" {
		limits, err := p.limits.Rejected(txn, why)
		p.limits = limits
		return err
	}
	fate := "answered"
	if !p.calm {
		fate = rapid.SampledFrom([]string{"answered", "answered", "answered", "lost", "answer lost", "late", "crash before", "crash after"}).Draw(p.t, "fate")
	}
	happened := false
	switch fate {
	case "late":
		*p.late = append(*p.late, txn)
	case "answered", "answer lost", "crash after":
		var err error
		if happened, err = p.target.commit(txn); err != nil {
			p.t.Fatal(err)
		}
	}
	switch {
	case fate == "crash before" || fate == "crash after":
		return errCrash
	case fate == "answered" && happened:
		p.standing = p.standing.Happened(txn, p.target.rev)
	default:
		standing, err := p.standing.Settle(p.target.read())
		if err != nil {
			return err
		}
		p.standing = standing
	}
	p.queue = p.queue.Drop(p.standing.Checkpoint)
	if p.standing.Checkpoint.Mode == replica.Syncing {
		p.watching = false
	}
	return nil
}

// The target is the source under the rules at every checkpoint, whatever
// happens in between: lost answers, late transactions, crashes, other owners,
// compaction, and limits that nobody told.
//
// covers: M-1, M-2, M-3, M-4
func TestEveryCheckpointIsAStateOfTheSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSource()
		foreign := map[string]replica.KV{
			"/registry/leases/shop/0":       {Key: "/registry/leases/shop/0", Value: []byte("ours"), Create: 1, Mod: 1},
			"/registry/configmaps/shop/old": {Key: "/registry/configmaps/shop/old", Value: []byte("surplus"), Create: 1, Mod: 1},
		}
		target := &target{source: s, rev: 1, kvs: foreign, owner: 1, limits: replica.Limits{
			Ops:   rapid.IntRange(3, 9).Draw(t, "max ops"),
			Bytes: rapid.IntRange(1500, 4000).Draw(t, "max bytes"),
		}, local: map[string]string{"/registry/leases/shop/0": "ours"}}
		var late []replica.Txn
		p := &process{t: t, source: s, target: target, late: &late, liar: rapid.Bool().Draw(t, "liar")}
		p.start()
		var zombie *process
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"mirror", "mirror", "mirror", "mirror", "change", "change", "compact", "arrive", "depose", "deposed", "deposed"}).Draw(t, "action") {
			case "change":
				s.change(drawOps(t))
			case "compact":
				s.compacted = max(s.compacted, s.rev-int64(rapid.IntRange(0, 5).Draw(t, "kept")))
			case "arrive":
				if len(late) > 0 {
					i := rapid.IntRange(0, len(late)-1).Draw(t, "which")
					if _, err := target.commit(late[i]); err != nil {
						t.Fatal(err)
					}
					late = slices.Delete(late, i, i+1)
				}
			case "depose": // another process owns the target; the old one has not noticed
				old := *p
				old.queue.Changes = slices.Clone(old.queue.Changes)
				zombie = &old
				target.rev++
				target.owner = target.rev
				p.start()
			case "mirror":
				run(t, p)
			case "deposed":
				if zombie != nil && zombie.step() != nil {
					zombie = nil
				}
			}
		}
		p.calm = true
		for range 200 {
			run(t, p)
		}
		if c := target.checkpoint.Checkpoint; c.Mode != replica.Steady || c.Rev != s.rev {
			t.Fatalf("the source rests at revision %d, and the checkpoint is %s", s.rev, c.Encode())
		}
		s.lied = false // what it said in between is forgotten: all is here in the end
		if err := target.check(); err != nil {
			t.Fatal(err)
		}
	})
}

// run does a step, and begins again as a new process where one has to end.
func run(t *rapid.T, p *process) {
	err := p.step()
	var deposed *replica.DeposedError
	var gap *replica.GapError
	switch {
	case err == nil:
	case errors.Is(err, errCrash), errors.As(err, &deposed):
		p.start()
	case errors.As(err, &gap):
		p.watching = false
	default:
		t.Fatal(err)
	}
}
