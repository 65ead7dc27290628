package flood

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/lockstep-dev/lockstep/bench/internal/stage"
	"github.com/lockstep-dev/lockstep/bench/internal/tally"
)

// Bill is what something took, until there was rest again.
type Bill struct {
	stage.Effort
	// Items are the writes of our controllers.
	Items []Item `json:"items"`
	// Repeated are writes of a part of an object, its spec or its status, that
	// the same role had written before.
	Repeated int `json:"repeated"`
	// Vain are requests that changed nothing.
	Vain map[string]int `json:"requestsInVain"`
	// AllWrites and AllBytes are what etcd was given by anybody, heartbeats,
	// Kubernetes and the bench among them.
	AllWrites int `json:"allWrites"`
	AllBytes  int `json:"allBytes"`
}

// Item is what a role wrote of one kind in one cluster.
type Item struct {
	Role    tally.Role `json:"role"`
	Cluster string     `json:"cluster"`
	Kind    string     `json:"kind"`
	Part    string     `json:"part"` // "created", "status", "updated", "deleted"
	Writes  int        `json:"writes"`
	Bytes   int        `json:"bytes"`
}

func (i Item) String() string {
	return fmt.Sprintf("%s in %s: %s %s", i.Role, i.Cluster, i.Kind, i.Part)
}

// comparable are the items of which there are known figures: one importer
// counts, since the exporting cluster of those figures imports nothing.
func comparable(i Item) bool { return i.Role != tally.Importer || i.Cluster == "west" }

func (b Bill) writes(which func(Item) bool) (n int) {
	for _, i := range b.Items {
		if which(i) {
			n += i.Writes
		}
	}
	return n
}

func (b Bill) bytes(which func(Item) bool) (n int) {
	for _, i := range b.Items {
		if which(i) {
			n += i.Bytes
		}
	}
	return n
}

// bill does something and says what it took.
func (b bench) bill(ctx context.Context, do func() error) (bill Bill, err error) {
	before, err := b.Effort(ctx)
	if err != nil {
		return bill, err
	}
	written, err := b.tally.Count(ctx, func() error {
		if err := do(); err != nil {
			return err
		}
		return b.tally.Calm(ctx, quiet, patience)
	})
	if err != nil {
		return bill, err
	}
	after, err := b.Effort(ctx)
	if err != nil {
		return bill, err
	}
	bill = add(written, b.Leader.Name)
	bill.Effort = after.Since(before)
	return bill, nil
}

// add sums up what was written.
func add(written []tally.Written, leader string) Bill {
	bill := Bill{Vain: map[string]int{}}
	items, times := map[Item]*Item{}, map[string]int{}
	for _, in := range written {
		for _, w := range in.Writes {
			bill.AllWrites++
			bill.AllBytes += w.Bytes
			role := tally.RoleOf(w, in.Cluster.Name == leader)
			if role == tally.Nobody {
				continue
			}
			key := Item{Role: role, Cluster: in.Cluster.Name, Kind: w.Resource, Part: part(w.Created, w.Deleted, w.Changed)}
			item := items[key]
			if item == nil {
				item = &key
				items[key] = item
			}
			item.Writes++
			item.Bytes += w.Bytes
			if !w.Deleted {
				// Those who wrote it first may not have been the same, but who created it was.
				piece := "spec"
				if key.Part == "status" {
					piece = "status"
				}
				id := fmt.Sprint(in.Cluster.Name, w.Resource, w.Namespace, w.Name, role, piece)
				if times[id]++; times[id] > 1 {
					bill.Repeated++
				}
			}
		}
		for resource, n := range in.Vain() {
			bill.Vain[in.Cluster.Name+" "+resource] += n
		}
	}
	for _, item := range items {
		bill.Items = append(bill.Items, *item)
	}
	slices.SortFunc(bill.Items, func(a, b Item) int { return cmp.Compare(a.String(), b.String()) })
	return bill
}

func part(created, deleted bool, changed []string) string {
	switch {
	case deleted:
		return "deleted"
	case created:
		return "created"
	case slices.Equal(changed, []string{"status"}):
		return "status"
	}
	return "updated"
}
