package lab

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Host is one cluster running: it supervises the components, as a kubelet
// does with static Pods, the node agent and the relays towards this cluster.
type Host struct {
	site  *site
	log   *slog.Logger
	units map[string]*unit
	agent *agentUnit

	// fault serialises faults that stop and start components.
	fault sync.Mutex
	// links are the relays towards this cluster, by the cluster they come from.
	links map[string]link
	crowd crowd
}

// NewHost prepares one cluster of a lab: files are written, nothing is started.
func NewHost(spec *Spec, cluster string, log *slog.Logger) (*Host, error) {
	site, err := spec.site(cluster)
	if err != nil {
		return nil, err
	}
	if err := site.prepare(time.Now()); err != nil {
		return nil, fmt.Errorf("cannot prepare cluster %q: %w", cluster, err)
	}
	h := &Host{site: site, log: log.With("cluster", cluster), units: map[string]*unit{}, links: site.newLinks()}
	for i, name := range componentNames {
		h.units[name] = h.newUnit(name, componentNames[:i])
	}
	h.agent = &agentUnit{site: site, log: h.log, gate: h.units[APIServer].waitReady, wanted: wanted{on: true}}
	return h, nil
}

// prepare writes all files of the cluster that are not there yet.
func (s *site) prepare(now time.Time) error {
	for _, dir := range s.folders() {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := s.ensureCredentials(now); err != nil {
		return err
	}
	return s.ensureConfiguration()
}

// newUnit makes the unit of a component that needs the one before it.
func (h *Host) newUnit(name string, before []string) *unit {
	return &unit{
		name:      name,
		log:       h.log,
		component: h.site.component(name),
		command:   h.site.command(h.site.component(name)),
		gate: func(ctx context.Context) error {
			if len(before) == 0 {
				return nil
			}
			return h.units[before[len(before)-1]].waitReady(ctx)
		},
		wanted: wanted{on: true},
	}
}

// Run keeps the cluster running until ctx is done; then nothing of it runs.
func (h *Host) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range componentNames {
		group.Go(func() error {
			h.units[name].run(ctx)
			return nil
		})
	}
	group.Go(func() error {
		h.agent.run(ctx)
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		h.crowd.leave()
		return nil
	})
	for _, l := range h.links {
		group.Go(func() error { return l.run(ctx) })
	}
	group.Go(func() error { return h.site.runEgress(ctx) })
	return group.Wait()
}

// WaitReady returns when the cluster can be used, or with the reason why it
// cannot.
func (h *Host) WaitReady(ctx context.Context) error {
	for _, name := range componentNames {
		if err := h.units[name].waitReady(ctx); err != nil {
			return fmt.Errorf("cluster %q: %w", h.site.Name, err)
		}
	}
	return h.site.waitPods(ctx)
}

// waitPods returns when Pods can be created: they need the ServiceAccount that
// the controller manager gives every namespace.
func (s *site) waitPods(ctx context.Context) error {
	probe := s.probe(s.url(s.Ports.APIServer)+"/api/v1/namespaces/default/serviceaccounts/default", "admin")
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		last := probe(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cluster %q has no ServiceAccount default/default (%w): %w", s.Name, ctx.Err(), last)
		case <-tick.C:
		}
	}
}

func (h *Host) unit(component string) (*unit, error) {
	if u, ok := h.units[component]; ok {
		return u, nil
	}
	return nil, fmt.Errorf("cluster %q has no component %q; it has %q", h.site.Name, component, componentNames)
}
