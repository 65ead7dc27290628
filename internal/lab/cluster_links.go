package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-dev/lockstep/internal/lab/relay"
)

// RelayAddress is the URL at which another cluster reaches the API server of
// this one through the link between the two; a cluster reaches itself directly.
// It is the address to join with.
func (c *Cluster) RelayAddress(from string) (string, error) {
	ports, err := c.relayPorts(from)
	return c.site.url(ports.APIServer), err
}

// RelayEtcdAddress is the same for etcd.
func (c *Cluster) RelayEtcdAddress(from string) (string, error) {
	ports, err := c.relayPorts(from)
	return c.site.url(ports.Etcd), err
}

func (c *Cluster) relayPorts(from string) (RelayPorts, error) {
	if from == c.site.Name {
		return RelayPorts{APIServer: c.site.Ports.APIServer, Etcd: c.site.Ports.Etcd}, nil
	}
	ports, ok := c.site.Relays[from]
	if !ok {
		return RelayPorts{}, fmt.Errorf("no link leads from %q to cluster %q", from, c.site.Name)
	}
	return ports, nil
}

// Cut interrupts the link between two clusters, both ways.
func (l *Lab) Cut(ctx context.Context, a, b string, how relay.Cut) error {
	return l.SetLink(ctx, a, b, relay.Condition{Cut: how})
}

// Slow makes the link between two clusters slow and lossy, both ways. A round
// trip takes latency twice; loss is a share between 0 and 1.
func (l *Lab) Slow(ctx context.Context, a, b string, latency time.Duration, loss float64) error {
	return l.SetLink(ctx, a, b, relay.Condition{Latency: latency, Loss: loss})
}

// Heal makes the link between two clusters perfect again.
func (l *Lab) Heal(ctx context.Context, a, b string) error {
	return l.SetLink(ctx, a, b, relay.Condition{})
}

// SetLink gives the connections that either of two clusters opens to the other
// a condition.
func (l *Lab) SetLink(ctx context.Context, a, b string, c relay.Condition) error {
	return errors.Join(l.setLink(ctx, a, b, c), l.setLink(ctx, b, a, c))
}

func (l *Lab) setLink(ctx context.Context, from, to string, c relay.Condition) error {
	target, err := l.Cluster(to)
	if err != nil {
		return err
	}
	return target.control.Inject(ctx, Fault{Action: SetLink, From: from, Condition: c})
}
