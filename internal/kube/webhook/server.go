package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server serves a handler over TLS until its context ends, and for Drain after it.
// It implements manager.Runnable and runs on every replica.
type Server struct {
	// Address to listen on, host:port.
	Address string
	Handler http.Handler
	// Certificate is asked for each connection, so that a new one needs no restart.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Drain is how long to go on serving after the context ended: API servers hear
	// a little later that this replica goes, and ask it until then. Start does not
	// wait for it, because a manager keeps its lease until all have returned, and
	// another replica could work already: who ends the process asks Drained.
	Drain time.Duration
	// Listening, if not nil, hears the address once it is listened on.
	Listening func(net.Addr)

	draining sync.WaitGroup
}

const (
	// requestTime bounds a request: an API server waits ten seconds for it.
	requestTime = 15 * time.Second
	// goodbye is for requests that are under way at the end.
	goodbye = 2 * time.Second
)

// Start implements manager.Runnable.
func (s *Server) Start(ctx context.Context) error {
	plain, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("cannot serve webhooks: %w; set another webhook.port", err)
	}
	if s.Listening != nil {
		s.Listening(plain.Addr())
	}
	listener := tls.NewListener(plain, &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: s.Certificate,
		// Not HTTP/2: an API server would put everything on one connection to one
		// replica, and if that replica froze, wait for it with all of it.
		NextProtos: []string{"http/1.1"},
	})
	server := &http.Server{
		Handler: s.Handler, ReadTimeout: requestTime, WriteTimeout: requestTime, IdleTimeout: time.Minute,
		// Handshakes that fail are whoever knocks; what matters fails at the API server.
		ErrorLog: log.New(discard{}, "", 0),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.draining.Go(func() {
		select {
		case <-time.After(s.Drain):
		case <-ended:
		}
		farewell, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		_ = server.Shutdown(farewell) // the process is about to end
		_ = server.Close()
	})
	return nil
}

// Drained returns once a server whose context ended answers nobody any more; at
// once, if it never served.
func (s *Server) Drained() { s.draining.Wait() }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (s *Server) NeedLeaderElection() bool { return false }

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
