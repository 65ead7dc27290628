package lab

import (
	"context"
	"time"
)

// Kill ends a component, or the processes of a Pod ([namespace/]prefix of its
// name), as kill -9 does. The cluster starts it again.
func (c *Cluster) Kill(ctx context.Context, target string) error {
	return c.control.Inject(ctx, Fault{Action: Kill, Target: target})
}

// Pause freezes a component or a Pod: it keeps its sockets and answers nothing.
func (c *Cluster) Pause(ctx context.Context, target string) error {
	return c.control.Inject(ctx, Fault{Action: Pause, Target: target})
}

// Continue lets what was frozen go on.
func (c *Cluster) Continue(ctx context.Context, target string) error {
	return c.control.Inject(ctx, Fault{Action: Continue, Target: target})
}

// Restart stops a component in order, starts it and waits until it serves.
func (c *Cluster) Restart(ctx context.Context, component string) error {
	return c.control.Inject(ctx, Fault{Action: Restart, Target: component})
}

// FillDisk makes every write to etcd fail as on a full disk, until FreeDisk.
func (c *Cluster) FillDisk(ctx context.Context) error {
	return c.control.Inject(ctx, Fault{Action: FillDisk})
}

// FreeDisk lets etcd write again.
func (c *Cluster) FreeDisk(ctx context.Context) error {
	return c.control.Inject(ctx, Fault{Action: FreeDisk})
}

// ExpireCertificate lets the API server serve with a certificate that has
// expired, until RenewCertificate.
func (c *Cluster) ExpireCertificate(ctx context.Context) error {
	return c.control.Inject(ctx, Fault{Action: ExpireCertificate})
}

// RenewCertificate gives the API server a good certificate.
func (c *Cluster) RenewCertificate(ctx context.Context) error {
	return c.control.Inject(ctx, Fault{Action: RenewCertificate})
}

// Overload lets the API server answer every ServiceAccount with 429, until
// Relieve. Administrators are served as before.
func (c *Cluster) Overload(ctx context.Context) error {
	return c.control.Inject(ctx, Fault{Action: Overload})
}

// Relieve lets the API server serve everybody again.
func (c *Cluster) Relieve(ctx context.Context) error {
	return c.control.Inject(ctx, Fault{Action: Relieve})
}

// ExpireTokens makes all ServiceAccount tokens of the cluster worthless. Those
// made afterwards are good, and the Pods of the cluster get such ones.
func (c *Cluster) ExpireTokens(ctx context.Context) error {
	return c.control.Inject(ctx, Fault{Action: ExpireTokens})
}

// ShiftClock replaces the Pods of a Deployment of ours ([namespace/]prefix of its
// name) with ones whose clock is shifted by offset; zero is the true time.
func (c *Cluster) ShiftClock(ctx context.Context, target string, offset time.Duration) error {
	return c.control.Inject(ctx, Fault{Action: ShiftClock, Target: target, Offset: offset})
}

// Snapshot saves the content of etcd under a name, or in a file given by an
// absolute path.
func (c *Cluster) Snapshot(ctx context.Context, name string) error {
	return c.control.Inject(ctx, Fault{Action: TakeSnapshot, File: name})
}

// Restore puts a snapshot back and waits until the cluster is ready. What was
// written since is gone. A bump above zero lets the revision go on from there,
// instead of going back in silence.
func (c *Cluster) Restore(ctx context.Context, name string, bump uint64) error {
	return c.control.Inject(ctx, Fault{Action: RestoreSnapshot, File: name, BumpRevision: bump})
}

// RestoreEmpty throws the content of etcd away and waits until the cluster is
// ready, as new.
func (c *Cluster) RestoreEmpty(ctx context.Context) error {
	return c.control.Inject(ctx, Fault{Action: RestoreSnapshot})
}
