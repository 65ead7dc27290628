package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// RoleKey says what an etcd is to its pair.
const RoleKey = "/lockstep/mirror/role"

// Role reads it from the quorum.
func (c *Client) Role(ctx context.Context) (replica.RoleAt, error) {
	answer, err := c.etcd.Get(ctx, RoleKey)
	if err != nil {
		return replica.RoleAt{}, fmt.Errorf("cannot read the role of this etcd in its pair: %w", err)
	}
	for _, kv := range answer.Kvs {
		role, err := replica.ParseRole(kv.Value)
		return replica.RoleAt{Role: role, Mod: kv.ModRevision}, err
	}
	return replica.RoleAt{}, nil
}

// MarkPrimary gives a source that has no role yet one, unless somebody else does
// so first.
func (c *Client) MarkPrimary(ctx context.Context, epoch int64) error {
	role := replica.Role{Side: replica.Primary, Epoch: epoch}
	_, err := c.etcd.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(RoleKey), "=", 0)).
		Then(clientv3.OpPut(RoleKey, string(role.Encode()))).Commit()
	if err != nil {
		return fmt.Errorf("cannot mark the primary's etcd as primary: %w", err)
	}
	return nil
}

// Promote makes a standby primary, in one transaction: from its revision on no
// transaction of a mirror happens any more. It is false when role or checkpoint
// are no longer what was looked at. The checkpoint goes: what it says is not so
// any more with the first change that the new primary takes.
func (c *Client) Promote(ctx context.Context, was replica.RoleAt, looked replica.Standing) (bool, error) {
	if err := looked.Promotable(); err != nil {
		return false, err
	}
	role := replica.Role{Side: replica.Primary, Epoch: was.Epoch + 1}
	answer, err := c.etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(RoleKey), "=", was.Mod), clientv3.Compare(clientv3.ModRevision(CheckpointKey), "=", looked.Mod)).
		Then(clientv3.OpPut(RoleKey, string(role.Encode())), clientv3.OpDelete(OwnerKey), clientv3.OpDelete(CheckpointKey)).Commit()
	if err != nil {
		return false, fmt.Errorf("cannot promote the standby's etcd: %w", err)
	}
	return answer.Succeeded, nil
}
