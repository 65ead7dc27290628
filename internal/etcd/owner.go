package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// Ownership is the right to write into a target. It ends with its lease, with
// Release, or when somebody deletes the owner key, as a promotion does; every
// transaction compares Rev, so an owner that has not noticed writes nothing.
type Ownership struct {
	// Rev is the create revision of the owner key: replica.Fence.Owner.
	Rev    int64
	client *Client
	lease  clientv3.LeaseID
}

// ownTime bounds the requests with which a target is taken.
const ownTime = 10 * time.Second

// Claim is how a target is taken.
type Claim struct {
	// Name of who takes it. It is that of one process, or of one Pod, so an owner
	// of this name is a former life of the same.
	Name string
	// Lease is for how long it is kept without a renewal, in whole seconds; etcd
	// grants at least its election timeout.
	Lease time.Duration
	// Was is the role of the target as it was read, and Becomes what it is marked
	// with. It is not taken if the role is another one by then.
	Was     replica.RoleAt
	Becomes replica.Role
}

// Own takes the target if nobody has it, and keeps it until ctx ends. It is
// false when somebody else has it, or the role has changed.
func (c *Client) Own(ctx context.Context, claim Claim) (Ownership, bool, error) {
	life := ctx
	ctx, cancel := context.WithTimeout(ctx, ownTime)
	defer cancel()
	granted, err := c.etcd.Grant(ctx, max(1, int64(claim.Lease/time.Second)))
	if err != nil {
		return Ownership{}, false, fmt.Errorf("cannot get a lease from the standby's etcd: %w%s", err, nextStep(err))
	}
	own := Ownership{client: c, lease: granted.ID}
	answer, err := c.take(ctx, claim, granted.ID)
	if err == nil && !answer.Succeeded {
		answer, err = c.takeOver(ctx, claim, granted.ID, answer)
	}
	if err != nil || !answer.Succeeded {
		_ = own.Release(ctx) // else it expires
	}
	switch {
	case err != nil:
		return Ownership{}, false, fmt.Errorf("cannot take the standby's etcd for %q: %w", claim.Name, err)
	case !answer.Succeeded:
		return Ownership{}, false, nil
	}
	own.Rev = answer.Header.Revision
	renewals, err := c.etcd.KeepAlive(life, granted.ID)
	if err != nil {
		return Ownership{}, false, fmt.Errorf("cannot keep the lease of %q: %w", claim.Name, err)
	}
	go drain(renewals) // ends with ctx, with the client, or with the lease
	return own, true, nil
}

func (c *Client) take(ctx context.Context, claim Claim, lease clientv3.LeaseID) (*clientv3.TxnResponse, error) {
	then := []clientv3.Op{clientv3.OpPut(OwnerKey, claim.Name, clientv3.WithLease(lease))}
	if claim.Becomes != claim.Was.Role {
		then = append(then, clientv3.OpPut(RoleKey, string(claim.Becomes.Encode())))
	}
	if claim.Was.Mod == 0 {
		// Whoever has no role has never been a standby, or is none any more: it was
		// promoted, and a person has given it back. A checkpoint of before that says
		// what has long changed.
		then = append(then, clientv3.OpDelete(CheckpointKey))
	}
	return c.etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(OwnerKey), "=", 0), clientv3.Compare(clientv3.ModRevision(RoleKey), "=", claim.Was.Mod)).
		Then(then...).Else(clientv3.OpGet(OwnerKey)).Commit()
}

// takeOver removes a former life of the same name. Should that still be alive,
// it is deposed: the owner key is created anew, and its revision is compared.
func (c *Client) takeOver(ctx context.Context, claim Claim, lease clientv3.LeaseID, found *clientv3.TxnResponse) (*clientv3.TxnResponse, error) {
	for _, kv := range found.Responses[0].GetResponseRange().GetKvs() {
		if string(kv.Value) != claim.Name {
			return found, nil
		}
		_, err := c.etcd.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(OwnerKey), "=", kv.CreateRevision)).
			Then(clientv3.OpDelete(OwnerKey)).Commit()
		if err != nil {
			return found, err
		}
	}
	return c.take(ctx, claim, lease)
}

func drain(renewals <-chan *clientv3.LeaseKeepAliveResponse) {
	for range renewals {
		// The answers carry nothing; unread ones would pile up.
	}
}

// Release gives the target up.
func (o Ownership) Release(ctx context.Context) error {
	_, err := o.client.etcd.Revoke(ctx, o.lease)
	return err
}

// Owner is who has the target, and since which revision; empty and 0: nobody.
func (c *Client) Owner(ctx context.Context) (name string, rev int64, err error) {
	answer, err := c.etcd.Get(ctx, OwnerKey)
	if err != nil {
		return "", 0, fmt.Errorf("cannot read who owns the standby's etcd: %w", err)
	}
	for _, kv := range answer.Kvs {
		name, rev = string(kv.Value), kv.CreateRevision
	}
	return name, rev, nil
}
