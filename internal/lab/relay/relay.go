package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
)

// Relay listens on one address and carries every connection to another.
type Relay struct {
	listen, target string

	// mu guards all below. changed is closed and replaced with condition.
	mu        sync.Mutex
	condition Condition
	changed   chan struct{}
	running   context.Context // nil before and after Run
	listener  net.Listener    // nil while refused
	conns     map[*conn]bool
	work      sync.WaitGroup // accept loops and connections; Run waits for them
}

// New describes a relay; Run starts it.
func New(listen, target string) *Relay {
	return &Relay{listen: listen, target: target, changed: make(chan struct{}), conns: map[*conn]bool{}}
}

// Run carries connections until ctx is done.
func (r *Relay) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	r.running = ctx
	err := r.settle()
	r.mu.Unlock()
	if err == nil {
		<-ctx.Done()
	}
	r.mu.Lock()
	r.running = nil
	r.refuse()
	r.mu.Unlock()
	r.work.Wait()
	return err
}

// Set changes the condition of the link. When it returns, the listener fits the
// condition; a chunk that was being written may still arrive.
func (r *Relay) Set(c Condition) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("cannot change the link to %s: %w", r.target, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.condition = c
	close(r.changed)
	r.changed = make(chan struct{})
	return r.settle()
}

// Condition is the present condition of the link.
func (r *Relay) Condition() Condition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.condition
}

// settle makes the listener fit the condition. The caller holds mu.
func (r *Relay) settle() error {
	switch {
	case r.running == nil:
		return nil
	case r.condition.Cut == Refused:
		r.refuse()
		return nil
	case r.listener != nil:
		return nil
	}
	listener, err := net.Listen("tcp", r.listen)
	if err != nil {
		return fmt.Errorf("cannot open the relay to %s: %w", r.target, err)
	}
	r.listener = listener
	ctx := r.running
	r.work.Go(func() { r.accept(ctx, listener) })
	return nil
}

// refuse closes the listener and resets all connections. The caller holds mu.
func (r *Relay) refuse() {
	if r.listener != nil {
		_ = r.listener.Close()
		r.listener = nil
	}
	for c := range r.conns {
		c.reset()
	}
}

func (r *Relay) accept(ctx context.Context, listener net.Listener) {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client went away before it was accepted
		}
		c := &conn{relay: r, client: client.(*net.TCPConn)}
		r.add(c)
		r.work.Go(func() {
			defer r.remove(c)
			c.run(ctx)
		})
	}
}

func (r *Relay) add(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[c] = true
}

func (r *Relay) remove(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

// passable blocks while the link is silent.
func (r *Relay) passable(ctx context.Context) error {
	for {
		r.mu.Lock()
		condition, changed := r.condition, r.changed
		r.mu.Unlock()
		if condition.Cut != Silent {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
