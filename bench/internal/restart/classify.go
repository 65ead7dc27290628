package restart

import (
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/bench/internal/journal"
	"github.com/lockstep-dev/lockstep/bench/internal/requests"
)

// class says to whom a write counts.
type class int

const (
	// others: components of Kubernetes and the node.
	others class = iota
	// ours: a controller's, of a kind that stays still while nothing happens.
	ours
	// announces, memories and leases are written all the time: heartbeats.
	announces
	memories
	leases
)

const (
	announceResource = "memberclusterannounces.multicluster.crd.antrea.io"
	setResource      = "clustersets.multicluster.crd.antrea.io"
)

// classify judges by the kind where no one else writes it, else by whether a
// controller of Lockstep ever wrote to the object: rather a write too many is
// counted than one too few.
func classify(w journal.Write) class {
	switch {
	case w.Resource == "leases" && strings.HasPrefix(w.Name, "lockstep-"):
		return leases
	case w.Resource == announceResource:
		return announces
	case w.Resource == setResource && slices.Equal(w.Changed, []string{"metadata.annotations." + v1alpha1.AnnotationLeaderSeen}):
		return memories
	case custom(w.Resource), slices.ContainsFunc(w.Managers, controller):
		return ours
	default:
		return others
	}
}

func custom(resource string) bool {
	return strings.HasSuffix(resource, ".multicluster.crd.antrea.io") || strings.HasSuffix(resource, ".multicluster.x-k8s.io")
}

// controller tells the field managers of our controllers, which the API server
// takes from their user agents.
func controller(manager string) bool {
	return manager == "lockstep-leader" || manager == "lockstep-member"
}

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
		switch classify(w) {
		case others:
			c.Others++
		case announces:
			c.Announces++
		case memories:
			c.Memories++
		case leases:
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

// written are the built-in kinds that our controllers write, beside all kinds
// of the multi-cluster API groups.
var written = []string{"services", "endpointslices", "endpoints", "events"}

// addVain compares the requests to one cluster with what reached its etcd, for
// the kinds that our controllers write, whoever made the requests.
func (c *Counts) addVain(writes []journal.Write, asked requests.Counts) {
	left := map[string]int{}
	for resource, n := range asked {
		left[resource] += n
	}
	for _, w := range writes {
		left[w.Resource]--
	}
	for resource, n := range left {
		if n != 0 && (custom(resource) || slices.Contains(written, resource)) {
			c.Vain += n
			c.VainKinds = more(c.VainKinds, resource, n)
		}
	}
}

func more(counts map[string]int, key string, n int) map[string]int {
	if counts == nil {
		counts = map[string]int{}
	}
	counts[key] += n
	return counts
}
