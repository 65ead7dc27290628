package etcd_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/lab/kubebin"
	"github.com/lockstep-dev/lockstep/internal/lab/pki"
	"github.com/lockstep-dev/lockstep/internal/proc"
)

// startTimeout bounds the start of one etcd on a machine that is busy with
// other tests.
const startTimeout = 2 * time.Minute

// server is one real etcd that asks for client certificates.
type server struct {
	endpoint string
	process  *proc.Process
	files    etcd.Files
}

// start starts an etcd that ends with the test.
func start(t *testing.T, flags ...string) *server {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real etcd, which takes seconds; run without -short")
	}
	// A test has no command line that could pass the folder in.
	binaries, err := kubebin.Ensure(t.Context(), kubebin.Options{Assets: os.Getenv("KUBEBUILDER_ASSETS")}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &server{endpoint: "https://" + free(t), files: certificates(t, dir)}
	peer := "http://" + free(t)
	s.process, err = proc.Start(proc.Command{
		Name: "etcd", Path: binaries.Etcd, Dir: dir, Log: filepath.Join(dir, "etcd.log"),
		Args: append([]string{
			"--name=one", "--data-dir=" + filepath.Join(dir, "data"),
			"--listen-client-urls=" + s.endpoint, "--advertise-client-urls=" + s.endpoint,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=one=" + peer,
			"--cert-file=" + s.files.Cert, "--key-file=" + s.files.Key, "--trusted-ca-file=" + s.files.CA, "--client-cert-auth=true",
			"--log-level=warn", "--unsafe-no-fsync=true",
		}, flags...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.process.Kill(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	raw := s.raw(t)
	if err := s.process.WaitReady(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := raw.Get(ctx, "ready")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

// free is an address of this machine that nobody uses now.
func free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// certificates writes an authority and one pair for server and client.
func certificates(t *testing.T, dir string) etcd.Files {
	t.Helper()
	now := time.Now()
	authority, err := pki.NewAuthority("test", now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(pki.Request{
		Name: "etcd", DNS: []string{"localhost"}, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	files := etcd.Files{CA: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	for name, text := range map[string][]byte{files.CA: authority.PEM().Cert, files.Cert: pair.Cert, files.Key: pair.Key} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func (s *server) tls(t *testing.T) *tls.Config {
	t.Helper()
	config, err := s.files.Config()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// client is ours; raw is etcd's own, to look past ours.
func (s *server) client(t *testing.T) *etcd.Client {
	t.Helper()
	client, err := etcd.Open(t.Context(), etcd.Options{Endpoints: []string{s.endpoint}, TLS: s.tls(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (s *server) raw(t *testing.T) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.endpoint}, TLS: s.tls(t), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// put writes keys one by one and returns the last revision.
func put(t *testing.T, raw *clientv3.Client, prefix string, from, to int) int64 {
	t.Helper()
	var rev int64
	for i := from; i < to; i++ {
		answer, err := raw.Put(t.Context(), fmt.Sprintf("%s%04d", prefix, i), fmt.Sprintf("v%d", i))
		if err != nil {
			t.Fatal(err)
		}
		rev = answer.Header.Revision
	}
	return rev
}
