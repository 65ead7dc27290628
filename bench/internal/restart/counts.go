package restart

import (
	"strings"

	"github.com/lockstep-dev/lockstep/bench/internal/journal"
	"github.com/lockstep-dev/lockstep/bench/internal/tally"
)

// Counts are what was written in all clusters together.
type Counts struct {
	// Writes of ours that nothing called for.
	Writes int `json:"writes"`
	// Fresh are those for the Service that was exported meanwhile.
	Fresh int `json:"freshWrites"`
	// FreshKinds is what the fresh ones wrote.
	FreshKinds map[string]int `json:"freshKinds"`
	// Announces, Memories and Leases are heartbeats: to the leader, of what a
	// member has to remember of it (once a minute), of the election.
	Announces int `json:"announces"`
	Memories  int `json:"memories"`
	Leases    int `json:"leases"`
	// Others are of Kubernetes itself: Pods, their owners, their events.
	Others int `json:"others"`
	// Vain are requests on kinds our controllers write that reached an API
	// server and changed nothing: refused, in conflict, or without a difference.
	Vain int `json:"requestsInVain"`
	// VainKinds is what they were about.
	VainKinds map[string]int `json:"requestsInVainKinds"`
}

// addWrites counts the writes to one cluster and returns those nothing called for.
func (c *Counts) addWrites(writes []journal.Write, fresh string) (unwanted []journal.Write) {
	for _, w := range writes {
		switch tally.Classify(w) {
		case tally.Others:
			c.Others++
		case tally.Announces:
			c.Announces++
		case tally.Memories:
			c.Memories++
		case tally.Leases:
			c.Leases++
		default:
			if belongs(w, fresh) {
				c.Fresh++
				c.FreshKinds = more(c.FreshKinds, w.Resource, 1)
				continue
			}
			c.Writes++
			unwanted = append(unwanted, w)
		}
	}
	return unwanted
}

// belongs tells whether an object is of the Service, whose name no other shares
// and all names on the wire contain.
func belongs(w journal.Write, service string) bool { return strings.Contains(w.Name, service) }

// addVain adds the requests of one cluster that changed nothing.
func (c *Counts) addVain(in tally.Written) {
	for resource, n := range in.Vain() {
		c.Vain += n
		c.VainKinds = more(c.VainKinds, resource, n)
	}
}

func more(counts map[string]int, key string, n int) map[string]int {
	if counts == nil {
		counts = map[string]int{}
	}
	counts[key] += n
	return counts
}
