package etcd_test

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/etcd"
)

// proxy stands between a client and a server and loses bytes on request: those
// of requests, or those of answers alone, which no cut of a whole link can do.
type proxy struct {
	address                   string
	loseRequests, loseAnswers atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: listener.Addr().String()}
	t.Cleanup(func() {
		_ = listener.Close()
		p.heal()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, client, server)
			p.mu.Unlock()
			go carry(server, client, &p.loseRequests)
			go carry(client, server, &p.loseAnswers)
		}
	}()
	return p
}

// carry copies until one end closes, and drops what comes while lose is set.
func carry(to, from net.Conn, lose *atomic.Bool) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if lose.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// heal carries everything again, over new connections: the old ones lack bytes.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loseRequests.Store(false)
	p.loseAnswers.Store(false)
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (s *server) through(t *testing.T) (*proxy, *etcd.Client) {
	t.Helper()
	p := newProxy(t, strings.TrimPrefix(s.endpoint, "https://"))
	behind := &server{endpoint: "https://" + p.address, files: s.files}
	return p, behind.client(t)
}
