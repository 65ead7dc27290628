package replica

import (
	"fmt"
	"iter"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

// Census counts keys before anything is written.
type Census struct {
	// Source are those of the source that may be mirrored; a fresh cluster has only
	// such whose labels would have to be read.
	Source int
	// Target are those of the target that are mirrored by their key.
	Target int
	// Surplus are those of them that the target alone has, and First is one of them.
	Surplus int
	First   string
}

// Count reads both sides, sorted by key and without values.
func Count(rules selection.Rules, source, target iter.Seq2[KV, error]) (Census, error) {
	var c Census
	for pair, err := range pairs(source, target) {
		if err != nil {
			return Census{}, err
		}
		if pair.source != nil && Candidate(rules, pair.source.Key) {
			c.Source++
		}
		if pair.target == nil || rules.Classify(pair.target.Key).Class != selection.Mirrored {
			continue
		}
		c.Target++
		if pair.source == nil {
			if c.Surplus++; c.Surplus == 1 {
				c.First = pair.target.Key
			}
		}
	}
	return c, nil
}

// fewSurplus is how many keys a first copy deletes without a question.
const fewSurplus = 100

// Admit refuses a copy that would empty its target: of a source without a single
// key, and, the first time (it has no checkpoint), of one that lacks most of what the
// target has. Endpoints that were swapped look like that, and so do those of an etcd
// for events. Accepted says that a person wants it all the same.
func (c Census) Admit(root string, first, accepted bool) error {
	switch {
	case c.Source == 0 && c.Target > 0:
		return refuse(fmt.Sprintf("the primary has no key below %s that is mirrored, and a copy of it would delete %d of the standby", root, c.Target),
			"check endpoints and prefix of the primary")
	case first && !accepted && c.Surplus > fewSurplus && 2*c.Surplus > c.Target:
		return &refusal.Refusal{
			What: "cannot mirror into the standby's etcd",
			Why: fmt.Sprintf("nothing has been copied into it yet, and the first copy would delete %d of its %d keys of mirrored classes, such as %s, which the primary lacks",
				c.Surplus, c.Target, c.First),
			Next: "check that the endpoints of primary and standby are not swapped; if these keys are to go, set firstCopyMayDelete: true in the configuration", Rule: "D-02",
		}
	}
	return nil
}

// Elected refuses a mirror whose Lease, which it acquired at the standby's API
// server, is not in the etcd that it is about to write: endpoints and kubeconfig are
// those of different clusters. Here and there tell whether target and source hold the
// Lease's key with this process as its holder.
func Elected(key string, here, there bool) error {
	switch {
	case here: // the primary may have one of the same holder, from when it was the standby
		return nil
	case there:
		return refuse(fmt.Sprintf("the Lease that elects the mirror, %s, is in the primary's etcd", key), "check that the endpoints of primary and standby are not swapped, and the kubeconfig")
	default:
		return refuse(fmt.Sprintf("the Lease that elects the mirror, %s, is not in the standby's etcd", key),
			"give the kubeconfig of the cluster whose etcd is the standby, and its --etcd-prefix as prefix")
	}
}
