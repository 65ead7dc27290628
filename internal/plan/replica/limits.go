package replica

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// Limits are what the target takes in one transaction. They are configured at
// its server, and no client can ask for them: they are learnt.
type Limits struct {
	Ops   int // etcd's --max-txn-ops
	Bytes int // etcd's --max-request-bytes
}

// DefaultLimits are etcd's own defaults.
var DefaultLimits = Limits{Ops: 128, Bytes: 1536 << 10}

// leastOps is the least that every step gets along with: a deletion with the
// comparisons of owner, checkpoint and the key itself.
const leastOps = 3

// Admits tells whether a transaction is within the limits.
func (l Limits) Admits(size Size) bool { return size.Ops <= l.Ops && size.Bytes <= l.Bytes }

// Rejection is why a target took nothing of a transaction.
type Rejection string

// The rejections.
const (
	TooManyOps Rejection = "too many operations"
	TooLarge   Rejection = "too large"
)

// Rejected is what a rejection teaches: half of what was tried. The error is
// for a transaction that cannot be made smaller.
func (l Limits) Rejected(t Txn, why Rejection) (Limits, error) {
	size := t.Size()
	switch {
	case why == TooManyOps && len(t.Ops) > 1:
		l.Ops = max(leastOps, min(l.Ops, size.Ops)/2)
		return l, nil
	case why == TooLarge && len(t.Ops) > 1:
		l.Bytes = min(l.Bytes, size.Bytes) / 2
		return l, nil
	}
	return l, &refusal.Refusal{
		What: fmt.Sprintf("cannot write %s into the standby's etcd", t.subject()),
		Why:  fmt.Sprintf("a request of %d operations and about %d bytes is %s for it", size.Ops, size.Bytes, why),
		Next: "start it with the --max-txn-ops and --max-request-bytes of the primary's etcd, or larger ones",
		Rule: "M-2",
	}
}

func (t Txn) subject() string {
	if len(t.Ops) == 0 {
		return "the checkpoint"
	}
	return t.Ops[0].Key
}

// Probe finds the largest number of operations a target takes, with requests
// that only read: doubling until one is refused, then halving the rest.
type Probe struct {
	Works int // the largest that was taken
	Fails int // the smallest that was refused; 0: none yet
	// Most is where doubling ends; 0 means 8192.
	Most int
}

// Next is the number to try; done when Works is the answer.
func (p Probe) Next() (n int, done bool) {
	most := p.Most
	if most == 0 {
		most = 8192
	}
	switch {
	case p.Fails == 0 && p.Works >= most:
		return 0, true
	case p.Fails == 0:
		return min(most, max(leastOps, 2*p.Works)), false
	case p.Fails-p.Works <= 1:
		return 0, true
	}
	return p.Works + (p.Fails-p.Works)/2, false
}

// Tell notes the answer to one try.
func (p Probe) Tell(n int, taken bool) Probe {
	if taken {
		p.Works = n
	} else {
		p.Fails = n
	}
	return p
}
