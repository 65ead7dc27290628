package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dev/lockstep/internal/lab/relay"
)

// link is the way from one other cluster to this one: a relay per server.
// The relays run at the end they lead to and listen on its address, so the
// certificates of the servers fit them.
type link struct {
	apiServer, etcd *relay.Relay
}

func (s *site) newLinks() map[string]link {
	links := map[string]link{}
	for from, ports := range s.Relays {
		links[from] = link{
			apiServer: relay.New(s.hostPort(ports.APIServer), s.hostPort(s.Ports.APIServer)),
			etcd:      relay.New(s.hostPort(ports.Etcd), s.hostPort(s.Ports.Etcd)),
		}
	}
	return links
}

func (l link) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.apiServer.Run(ctx) })
	group.Go(func() error { return l.etcd.Run(ctx) })
	return group.Wait()
}

// setLink changes the condition of the link from another cluster.
func (h *Host) setLink(from string, c relay.Condition) error {
	l, ok := h.links[from]
	if !ok {
		return fmt.Errorf("no link comes from %q, only from %q", from, slices.Sorted(maps.Keys(h.links)))
	}
	if err := l.apiServer.Set(c); err != nil {
		return err
	}
	return l.etcd.Set(c)
}
