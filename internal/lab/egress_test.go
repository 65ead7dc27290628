package lab

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What the API server asks of Pod 10.a.b.c arrives at 127.a.b.c, and whoever has no
// certificate of the cluster gets nowhere.
func TestEgress(t *testing.T) {
	pod, err := net.Listen("tcp", "127.9.16.9:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pod.Close()
	go func() {
		for {
			conn, err := pod.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); _ = conn.Close() }()
		}
	}()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(free.Addr().(*net.TCPAddr).Port)
	_ = free.Close()
	dir := t.TempDir()
	s := &site{
		ClusterSpec: ClusterSpec{
			Name: "leader", Address: netip.MustParseAddr("127.0.0.1"), PodCIDR: netip.MustParsePrefix("10.9.16.0/20"),
			ServiceCIDR: netip.MustParsePrefix("10.96.0.0/16"), Ports: Ports{Egress: port},
		},
		lab: &Spec{Dir: dir}, dir: dir,
	}
	if err := os.MkdirAll(filepath.Join(dir, "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.ensureCredentials(time.Now()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.runEgress(ctx) }()

	_, podPort, _ := net.SplitHostPort(pod.Addr().String())
	own, err := tls.LoadX509KeyPair(s.pki("etcd-client.crt"), s.pki("etcd-client.key"))
	if err != nil {
		t.Fatal(err)
	}
	if said, err := through(s, []tls.Certificate{own}, net.JoinHostPort("10.9.16.9", podPort)); err != nil || said != "hello" {
		t.Errorf("the Pod said %q, %v", said, err)
	}
	if said, err := through(s, []tls.Certificate{own}, "10.9.16.8:1"); err == nil {
		t.Errorf("a Pod that does not listen said %q", said)
	}
	if said, err := through(s, nil, net.JoinHostPort("10.9.16.9", podPort)); err == nil {
		t.Errorf("to a stranger the Pod said %q", said)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// through sends a word through the proxy and returns what came back.
func through(s *site, own []tls.Certificate, to string) (string, error) {
	authority, err := os.ReadFile(s.pki("ca.crt"))
	if err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	var conn *tls.Conn
	for deadline := time.Now().Add(30 * time.Second); ; {
		conn, err = tls.Dial("tcp", s.hostPort(s.Ports.Egress), &tls.Config{RootCAs: roots, Certificates: own})
		if err == nil {
			break
		}
		if time.Now().After(deadline) || own == nil {
			return "", err
		}
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", response.StatusCode)
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		return "", err
	}
	word := make([]byte, 5)
	_, err = io.ReadFull(reader, word)
	return string(word), err
}
