package etcdtest

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy stands between a client and a server and loses bytes on request: those
// of requests, or those of answers alone, which no cut of a whole link can do.
type Proxy struct {
	address                   string
	LoseRequests, LoseAnswers atomic.Bool
	// Lost counts bytes.
	Lost atomic.Int64

	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{address: listener.Addr().String()}
	t.Cleanup(func() {
		_ = listener.Close()
		p.Heal()
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
			go p.carry(server, client, &p.LoseRequests)
			go p.carry(client, server, &p.LoseAnswers)
		}
	}()
	return p
}

// carry copies until one end closes, and drops what comes while lose is set.
func (p *Proxy) carry(to, from net.Conn, lose *atomic.Bool) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if lose.Load() {
			p.Lost.Add(int64(n))
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// Heal carries everything again, over new connections: the old ones lack bytes.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.LoseRequests.Store(false)
	p.LoseAnswers.Store(false)
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// Through is a server behind a proxy.
func (s *Server) Through(t testing.TB) (*Proxy, *Server) {
	t.Helper()
	p := newProxy(t, strings.TrimPrefix(s.Endpoint, "https://"))
	return p, &Server{Endpoint: "https://" + p.address, Files: s.Files}
}
