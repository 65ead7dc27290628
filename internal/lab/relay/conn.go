package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	chunkSize = 32 << 10
	// queueLength bounds what is under way in one direction to 2 MiB, about the
	// product of 100 ms and 20 MB/s. A reader that is further ahead blocks, and
	// TCP slows the sender down.
	queueLength = 64
)

// conn is one connection through a relay.
type conn struct {
	relay  *Relay
	client *net.TCPConn

	// mu guards server and closed.
	mu     sync.Mutex
	server *net.TCPConn // nil until dialled
	closed bool
}

// run carries bytes both ways until both ends are done.
func (c *conn) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, c.reset)
	defer stop()
	defer c.close()
	if !c.dial(ctx) {
		c.reset()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { c.carry(ctx, c.server, c.client) })
	both.Go(func() { c.carry(ctx, c.client, c.server) })
	both.Wait()
}

// dial connects to the target once the link lets a connection through.
func (c *conn) dial(ctx context.Context) bool {
	if c.relay.passable(ctx) != nil {
		return false
	}
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.relay.target)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = server.(*net.TCPConn)
	return !c.closed
}

// chunk is what was read at once.
type chunk struct {
	data []byte
	due  time.Time // when it arrives at the other end
	lost bool      // it never does
}

// carry moves bytes one way. Reading and writing are apart, so that latency
// delays every byte and holds up none.
func (c *conn) carry(ctx context.Context, to, from *net.TCPConn) {
	queue := make(chan chunk, queueLength)
	var reading sync.WaitGroup
	reading.Go(func() { c.read(ctx, from, queue) })
	c.write(ctx, to, queue)
	for range queue { // lets the reader end when the writer gave up
	}
	reading.Wait()
}

// read fills the queue. The end of the stream closes it; a broken one counts
// as lost, so that the other end is reset too, but not before the link carries
// the news.
func (c *conn) read(ctx context.Context, from *net.TCPConn, queue chan<- chunk) {
	defer close(queue)
	for {
		buffer := make([]byte, chunkSize)
		n, err := from.Read(buffer)
		late, arrives := c.relay.Condition().delay()
		next := chunk{data: buffer[:n], due: time.Now().Add(late), lost: !arrives}
		if errors.Is(err, io.EOF) && n == 0 {
			return
		}
		if err != nil && n == 0 {
			next.lost = true
		}
		select {
		case queue <- next:
		case <-ctx.Done():
			return
		}
		if next.lost {
			return
		}
	}
}

// write empties the queue in order, each chunk when it is due and the link
// lets it through.
func (c *conn) write(ctx context.Context, to *net.TCPConn, queue <-chan chunk) {
	for next := range queue {
		if wait(ctx, time.Until(next.due)) != nil || c.relay.passable(ctx) != nil {
			return
		}
		if next.lost {
			c.reset()
			return
		}
		if _, err := to.Write(next.data); err != nil {
			c.reset()
			return
		}
	}
	if c.relay.passable(ctx) == nil {
		_ = to.CloseWrite()
	}
}

// reset ends both sides at once, with the error a broken connection has.
func (c *conn) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, side := range []*net.TCPConn{c.client, c.server} {
		if side != nil {
			_ = side.SetLinger(0) // close sends RST instead of FIN
			_ = side.Close()
		}
	}
}

func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	_ = c.client.Close()
	if c.server != nil {
		_ = c.server.Close()
	}
}

// wait blocks for a while, or until ctx is done.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
