package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/lab/node/podaddr"
)

// egressFile tells the API server which way its requests into the cluster take.
const egressFile = "egress.yaml"

// dialTime bounds the way from the API server to a Pod, which are one machine.
const dialTime = 5 * time.Second

// egressFlags let the API server reach webhooks by their Services, as they are
// installed anywhere: it picks one of the ready endpoints itself, because there
// is no proxy for cluster IPs, and dials it through the proxy below, because the
// processes of Pod 10.a.b.c listen on 127.a.b.c.
//
//	API server ── Service ─► EndpointSlice ─► CONNECT 10.a.b.c:9443 ─► egress ─► 127.a.b.c:9443
func (s *site) egressFlags() []string {
	if s.Ports.Egress == 0 {
		return nil
	}
	return flags("enable-aggregator-routing=true", "egress-selector-config-file="+s.conf(egressFile))
}

func (s *site) egressConfiguration() string {
	return fmt.Sprintf(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      tcp:
        url: %s
        tlsConfig:
          caBundle: %s
          clientCert: %s
          clientKey: %s
`, s.url(s.Ports.Egress), s.pki("ca.crt"), s.pki("etcd-client.crt"), s.pki("etcd-client.key"))
}

// runEgress is the proxy; it serves until ctx is done.
func (s *site) runEgress(ctx context.Context) error {
	if s.Ports.Egress == 0 {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.hostPort(s.Ports.Egress))
	if err != nil {
		return fmt.Errorf("cannot listen for what the API server of cluster %q asks of Pods: %w", s.Name, err)
	}
	// The API server takes no proxy without TLS, and shows the certificate that it
	// shows to etcd as well.
	trust, err := s.egressTLS()
	if err != nil {
		_ = listener.Close()
		return err
	}
	server := &http.Server{
		TLSConfig:         trust,
		Handler:           http.HandlerFunc(s.connect),
		ReadHeaderTimeout: dialTime,
		// Tunnels end with the host as well.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *site) egressTLS() (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(s.pki("egress.crt"), s.pki("egress.key"))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(s.pki("ca.crt"))
	if err != nil {
		return nil, err
	}
	callers := x509.NewCertPool()
	callers.AppendCertsFromPEM(authority)
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: callers,
		NextProtos: []string{"http/1.1"}, // a connection of HTTP/2 cannot be taken over
	}, nil
}

// connect joins one connection of the API server with a Pod.
func (s *site) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT is served here", http.StatusMethodNotAllowed)
		return
	}
	to, err := (&net.Dialer{Timeout: dialTime}).DialContext(r.Context(), "tcp", s.listensAt(r.Host))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer to.Close()
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	stop := context.AfterFunc(r.Context(), func() { _, _ = from.Close(), to.Close() })
	defer stop()
	if _, err := io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	carry := func(w net.Conn, r io.Reader) {
		_, _ = io.Copy(w, r)
		// Whoever has nothing more to say ends the whole, as TLS does.
		_, _ = from.Close(), to.Close()
	}
	both.Go(func() { carry(to, buffered) })
	both.Go(func() { carry(from, to) })
	both.Wait()
}

// listensAt is where the process behind an address of a Pod listens; other
// addresses are what they are.
func (s *site) listensAt(hostPort string) string {
	at, err := netip.ParseAddrPort(hostPort)
	if err != nil || !s.PodCIDR.Contains(at.Addr()) {
		return hostPort
	}
	return netip.AddrPortFrom(podaddr.Twin(at.Addr()), at.Port()).String()
}
