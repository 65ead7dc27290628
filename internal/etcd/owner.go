package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
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

// Own takes the target if nobody has it, and keeps it until ctx ends. It is
// false when somebody else has it. The lease is in whole seconds; etcd grants at
// least its election timeout.
func (c *Client) Own(ctx context.Context, name string, lease time.Duration) (Ownership, bool, error) {
	granted, err := c.etcd.Grant(ctx, max(1, int64(lease/time.Second)))
	if err != nil {
		return Ownership{}, false, fmt.Errorf("cannot get a lease from the standby's etcd: %w", err)
	}
	own := Ownership{client: c, lease: granted.ID}
	answer, err := c.etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(OwnerKey), "=", 0)).
		Then(clientv3.OpPut(OwnerKey, name, clientv3.WithLease(granted.ID))).Commit()
	if err != nil || !answer.Succeeded {
		_ = own.Release(ctx) // else it expires
	}
	switch {
	case err != nil:
		return Ownership{}, false, fmt.Errorf("cannot take the standby's etcd for %q: %w", name, err)
	case !answer.Succeeded:
		return Ownership{}, false, nil
	}
	own.Rev = answer.Header.Revision
	renewals, err := c.etcd.KeepAlive(ctx, granted.ID)
	if err != nil {
		return Ownership{}, false, fmt.Errorf("cannot keep the lease of %q: %w", name, err)
	}
	go drain(renewals) // ends with ctx, with the client, or with the lease
	return own, true, nil
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
