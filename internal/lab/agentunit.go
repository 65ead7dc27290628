package lab

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/lab/node"
)

// agentUnit keeps the node agent of a cluster running, as a unit does with a
// component. The agent lives in the host's process.
type agentUnit struct {
	site *site
	log  *slog.Logger
	// gate blocks until the API server serves.
	gate func(context.Context) error

	// wanted also guards what follows it.
	wanted
	agent  *node.Agent // the one that runs
	cancel context.CancelFunc
}

// run makes the wanted state so until ctx is done.
func (u *agentUnit) run(ctx context.Context) {
	for u.await(ctx, func() bool { return u.on }) == nil {
		err := u.runOnce(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		u.log.Warn("node agent ended, starting it again", "backoff", lastBackoff, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(lastBackoff):
		}
	}
}

func (u *agentUnit) runOnce(ctx context.Context) error {
	if err := u.gate(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	agent, err := u.site.newAgent(u.log)
	if err != nil {
		return err
	}
	u.change(func() {
		if u.on {
			u.agent, u.cancel = agent, cancel
		} else {
			cancel()
		}
	})
	err = agent.Run(ctx)
	u.change(func() { u.agent, u.cancel = nil, nil })
	return err
}

// stop ends the agent with its processes and returns when they are gone.
func (u *agentUnit) stop(ctx context.Context) error {
	u.change(func() {
		u.on = false
		if u.cancel != nil {
			u.cancel()
		}
	})
	return u.await(ctx, func() bool { return u.agent == nil })
}

// current is the agent that runs, or nil.
func (u *agentUnit) current() (agent *node.Agent) {
	u.look(func() { agent = u.agent })
	return agent
}

// newAgent describes the one node of the cluster.
func (s *site) newAgent(log *slog.Logger) (*node.Agent, error) {
	config, err := s.restConfig()
	if err != nil {
		return nil, err
	}
	return node.New(node.Options{
		RESTConfig: config,
		Dir:        s.nodeDir(),
		Name:       s.Name + "-node",
		PodCIDR:    s.PodCIDR,
		Images:     s.lab.Images,
		// The mark is last, so that nothing a user adds can hide a process from Down.
		Env: append(slices.Clone(s.lab.Env), mark(s.lab.Dir)),
		Log: log,
	})
}
