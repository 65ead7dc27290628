package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

// Foreign tells of changes that somebody else than the mirror made to mirrored
// keys of a target, from a revision of it on: each time with the revision up to
// which all is told. It ends as Watch does.
//
// One watch has both the objects and the checkpoint, so that a revision comes
// with the mark of whose it is.
func (c *Client) Foreign(ctx context.Context, rules selection.Rules, from int64, deliver func(foreign []replica.Event, through int64) error) error {
	root := rules.Root()
	w := WatchFrom{Prefix: min(root, CheckpointKey), End: max(clientv3.GetPrefixRangeEnd(root), CheckpointKey+"\x00"), Rev: from}
	return c.Watch(ctx, w, func(b replica.Batch) error {
		var foreign []replica.Event
		for _, revision := range b.Revisions {
			foreign = append(foreign, replica.Foreign(rules, CheckpointKey, revision)...)
		}
		return deliver(foreign, b.Through)
	})
}
