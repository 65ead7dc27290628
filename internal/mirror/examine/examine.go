// Package examine compares a standby with its primary at one consistent cut.
package examine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

// tries at another cut, when the first was compacted while it was read.
const tries = 3

// Report is one comparison.
type Report struct {
	Time    time.Time       `json:"time"`
	Took    string          `json:"took"`
	Verdict replica.Verdict `json:"verdict"`
	// Dangling owners of mirrored objects of the standby; DanglingCount is of all,
	// and Dangling at most as many as were asked for.
	Dangling      []replica.Dangling `json:"danglingOwners"`
	DanglingCount int                `json:"danglingOwnersCount"`
	// Foreign are keys that somebody else has changed between the cut and the end.
	Foreign      []string `json:"foreignWrites"`
	ForeignCount int      `json:"foreignWritesCount"`
	// Head is the primary's revision when the comparison began.
	Head int64 `json:"primaryHead"`
	// Owner is who writes the standby, and OwnerRev since which revision of it.
	Owner    string `json:"owner"`
	OwnerRev int64  `json:"ownerRevision"`
}

// LocalKeys is how many mirrored keys the standby has.
func (r Report) LocalKeys() int { return r.Verdict.Keys - r.Verdict.Missed + r.Verdict.Surplus }

// Clean: nothing was found.
func (r Report) Clean() bool { return r.Verdict.Consistent }

// Why is one sentence about what was found.
func (r Report) Why() string {
	v := r.Verdict
	if r.Clean() {
		return fmt.Sprintf("%d keys are equal", v.Keys)
	}
	return fmt.Sprintf("%d missed, %d surplus, %d different of %d keys", v.Missed, v.Surplus, v.Differs, v.Keys)
}

// Examination is what a judgement is made of.
func (r Report) Examination() replica.Examination {
	return replica.Examination{
		At: r.Time, Owner: r.OwnerRev, Clean: r.Clean(), Why: r.Why(), Foreign: r.ForeignCount,
		Head: r.Head, Rev: r.Verdict.Cut.Rev, Keys: r.Verdict.Keys,
	}
}

// Examine reads both sides, page by page. Most bounds each list of the report.
// It is refused while the standby is no revision of the primary.
func Examine(ctx context.Context, source, target *etcd.Client, rules selection.Rules, most int) (Report, error) {
	return persist(ctx, source, target, rules, most, func(replica.Cut) (replica.Look, error) {
		return func(string, bool, []byte, []byte) {}, nil
	})
}

// watcher makes somebody who is shown all that is read at a cut.
type watcher func(replica.Cut) (replica.Look, error)

func persist(ctx context.Context, source, target *etcd.Client, rules selection.Rules, most int, watch watcher) (Report, error) {
	for try := 1; ; try++ {
		report, err := examine(ctx, source, target, rules, most, watch)
		gone := new(etcd.CompactedError)
		if !errors.As(err, &gone) || try == tries {
			return report, err
		}
	}
}

func examine(ctx context.Context, source, target *etcd.Client, rules selection.Rules, most int, watch watcher) (Report, error) {
	begin := time.Now()
	standing, err := target.Standing(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("standby: %w", err)
	}
	cut, err := standing.Cut()
	if err != nil {
		return Report{}, err
	}
	head, err := sameSource(ctx, source, standing, rules)
	if err != nil {
		return Report{}, err
	}
	report := Report{Time: begin, OwnerRev: standing.Owner, Head: head}
	if report.Owner, _, err = target.Owner(ctx); err != nil {
		return Report{}, err
	}
	look, err := watch(cut)
	if err != nil {
		return Report{}, err
	}
	var owners replica.Owners
	report.Verdict, err = replica.CompareWith(cut, rules,
		source.Read(ctx, etcd.Range{Prefix: rules.Root(), Rev: cut.Rev}),
		watched(rules, &owners, target.Read(ctx, etcd.Range{Prefix: rules.Root(), Rev: cut.Mod})), most, look)
	if err != nil {
		return Report{}, err
	}
	report.Dangling = owners.Dangling()
	report.DanglingCount = len(report.Dangling)
	report.Dangling = report.Dangling[:min(most, len(report.Dangling))]
	if err := report.foreign(ctx, target, rules, cut.Mod+1, most); err != nil {
		return Report{}, fmt.Errorf("standby: %w", err)
	}
	report.Took = time.Since(begin).Round(time.Millisecond).String()
	return report, nil
}

// sameSource refuses a comparison with another primary than the one that was
// copied: revisions of another mean nothing. It returns the primary's revision.
func sameSource(ctx context.Context, source *etcd.Client, standing replica.Standing, rules selection.Rules) (head int64, err error) {
	peer, err := source.Source(ctx)
	if err != nil {
		return 0, fmt.Errorf("primary: %w", err)
	}
	peer.Epoch, peer.Rules = standing.Checkpoint.Epoch, rules.Digest()
	if peer.Rules != standing.Checkpoint.Rules {
		return 0, fmt.Errorf("the standby was copied under other rules (%s) than are asked for (%s); use the configuration of the mirror", standing.Checkpoint.Rules, peer.Rules)
	}
	_, err = replica.Decide(standing, peer)
	return peer.Rev, err
}

// watched shows all objects of the standby to owners as they pass.
func watched(rules selection.Rules, owners *replica.Owners, seq iter.Seq2[replica.KV, error]) iter.Seq2[replica.KV, error] {
	return func(yield func(replica.KV, error) bool) {
		for kv, err := range seq {
			if err == nil {
				owners.Add(kv.Key, kv.Value, replica.Mirrored(rules, kv.Key, kv.Value))
			}
			if !yield(kv, err) {
				return
			}
		}
	}
}

var errReached = errors.New("reached")

// foreign replays what has happened on the standby since the cut.
func (r *Report) foreign(ctx context.Context, target *etcd.Client, rules selection.Rules, from int64, most int) error {
	head, err := target.Head(ctx)
	if err != nil || head.Rev < from {
		return err
	}
	err = target.Foreign(ctx, rules, from, func(foreign []replica.Event, through int64) error {
		for _, event := range foreign {
			if r.ForeignCount++; len(r.Foreign) < most {
				r.Foreign = append(r.Foreign, event.Key)
			}
		}
		if through >= head.Rev {
			return errReached
		}
		return nil
	})
	if errors.Is(err, errReached) {
		return nil
	}
	return err
}
