package certificate

import (
	"slices"
	"time"
)

// Life is how long a key pair is good for by default.
const Life = 90 * 24 * time.Hour

// Times follow from the life of a key pair.
type Times struct {
	// Life of a key pair; zero means Life.
	Life time.Duration
}

func (t Times) life() time.Duration {
	if t.Life == 0 {
		return Life
	}
	return t.Life
}

// End of a pair that is made now.
func (t Times) End(now time.Time) time.Time { return now.Add(t.life()) }

// renewBefore is how long before its end a pair is replaced: a third of its life,
// 30 of 90 days. For as long nothing needs to work.
func (t Times) renewBefore() time.Duration { return t.life() / 3 }

// overlap is how long the API servers of a cluster have to hear of the next CA
// before its pair is served. They watch, so seconds would do.
func (t Times) overlap() time.Duration { return min(10*time.Minute, t.life()/30) }

// Pair is a key pair as the Secret holds it.
type Pair struct {
	// Made and End are when it was issued and when it expires.
	Made, End time.Time
	// Names and addresses it may be served under.
	Names []string
}

func (p *Pair) covers(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(p.Names, name) })
}

// Observed is everything a decision depends on.
type Observed struct {
	Now time.Time
	// Names the webhooks are asked under.
	Names []string
	// Current is the pair that is served, Next the one that will be; nil when the
	// Secret holds none that can be used.
	Current, Next *Pair
	// Published is since when every webhook configuration has the CA of Next;
	// zero: not all have.
	Published time.Time
	// Ends are when the CAs of the bundle expire, in its order.
	Ends []time.Time
}

// Step is what to do with the Secret.
type Step string

const (
	// Keep changes nothing.
	Keep Step = "keep"
	// Issue makes a new current pair and begins the bundle with it alone.
	Issue Step = "issue"
	// Stage makes a next pair and adds its CA to the bundle.
	Stage Step = "stage"
	// Promote makes the next pair the current one.
	Promote Step = "promote"
	// Prune takes CAs that have ended out of the bundle.
	Prune Step = "prune"
)

// Decision is one step, and when to look again if nothing changes before.
type Decision struct {
	Step Step
	// Why is for the log; empty for Keep.
	Why         string
	LookAgainIn time.Duration
}

// Decide what is next. Each step leads to another state of the Secret, and the
// next look decides again.
func Decide(o Observed, t Times) Decision {
	switch usable := o.Current != nil && o.Now.Before(o.Current.End); {
	case !usable && o.Next != nil && o.Now.Before(o.Next.End) && o.Next.covers(o.Names):
		return Decision{Step: Promote, Why: "the key pair that was served has ended, and another was ready"}
	case o.Current == nil:
		return Decision{Step: Issue, Why: "there is no key pair that can be used"}
	case !usable:
		return Decision{Step: Issue, Why: "the key pair has ended"}
	}
	if o.Next != nil && (!o.Now.Before(o.Next.End) || !o.Next.covers(o.Names)) {
		return Decision{Step: Stage, Why: "the next key pair cannot be used any more"}
	}
	if o.Next != nil {
		if wait, ready := o.promotable(t); !ready {
			return Decision{Step: Keep, LookAgainIn: wait}
		}
		return Decision{Step: Promote, Why: "every webhook configuration trusts the next key pair"}
	}
	due := o.Current.End.Add(-t.renewBefore())
	switch {
	case !o.Current.covers(o.Names):
		return Decision{Step: Stage, Why: "the key pair lacks a name the webhooks are asked under"}
	case !o.Now.Before(due):
		return Decision{Step: Stage, Why: "the key pair ends soon"}
	case slices.ContainsFunc(o.Ends, func(end time.Time) bool { return !o.Now.Before(end) }):
		return Decision{Step: Prune, Why: "a CA has ended"}
	}
	again := due.Sub(o.Now)
	for _, end := range o.Ends {
		again = min(again, end.Sub(o.Now))
	}
	return Decision{Step: Keep, LookAgainIn: again}
}

// promotable tells whether the API servers have had time to hear of the next CA,
// or for how long to wait.
func (o Observed) promotable(t Times) (time.Duration, bool) {
	if o.Published.IsZero() {
		// A change of the configurations wakes us; this is for when one was missed.
		return t.overlap(), false
	}
	wait := t.overlap() - o.Now.Sub(o.Published)
	return wait, wait <= 0
}
