// Package etcdtest starts real etcds for tests, each with one member and a
// certificate for clients.
package etcdtest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
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

// StartTimeout bounds the start of one etcd on a machine that is busy with
// other tests.
const StartTimeout = 2 * time.Minute

// Server is one real etcd that asks for client certificates.
type Server struct {
	Endpoint string
	Process  *proc.Process
	Files    etcd.Files

	binaries kubebin.Binaries
	dir      string
	peer     string
	flags    []string
	restores int
}

// Start starts an etcd that ends with the test.
func Start(t testing.TB, flags ...string) *Server {
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
	s := &Server{Endpoint: "https://" + free(t), Files: certificates(t, dir), binaries: binaries, dir: dir, peer: "http://" + free(t), flags: flags}
	s.run(t, filepath.Join(dir, "data"))
	t.Cleanup(func() {
		if err := s.Process.Kill(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// run starts the process with a folder of data, and waits until it answers.
func (s *Server) run(t testing.TB, data string) {
	t.Helper()
	var err error
	s.Process, err = proc.Start(proc.Command{
		Name: "etcd", Path: s.binaries.Etcd, Dir: s.dir, Log: filepath.Join(s.dir, "etcd.log"),
		Args: append([]string{
			"--name=one", "--data-dir=" + data,
			"--listen-client-urls=" + s.Endpoint, "--advertise-client-urls=" + s.Endpoint,
			"--listen-peer-urls=" + s.peer, "--initial-advertise-peer-urls=" + s.peer, "--initial-cluster=one=" + s.peer,
			"--cert-file=" + s.Files.Cert, "--key-file=" + s.Files.Key, "--trusted-ca-file=" + s.Files.CA, "--client-cert-auth=true",
			"--log-level=warn", "--unsafe-no-fsync=true",
		}, s.flags...),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), StartTimeout)
	defer cancel()
	raw := s.Raw(t)
	if err := s.Process.WaitReady(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := raw.Get(ctx, "ready")
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// Backup saves a snapshot and returns its file.
func (s *Server) Backup(t testing.TB) string {
	t.Helper()
	from, err := s.Raw(t).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	file := filepath.Join(t.TempDir(), "backup.db")
	to, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

// Restore replaces the etcd by what a backup holds, under the same URLs and token,
// as an operator does after a disaster. Flags are those of etcdutl snapshot restore.
func (s *Server) Restore(t testing.TB, backup string, flags ...string) {
	t.Helper()
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.restores++
	data := filepath.Join(s.dir, fmt.Sprintf("data-%d", s.restores))
	args := append([]string{
		"snapshot", "restore", backup, "--data-dir=" + data, "--name=one",
		"--initial-cluster=one=" + s.peer, "--initial-advertise-peer-urls=" + s.peer,
	}, flags...)
	if text, err := exec.CommandContext(t.Context(), s.binaries.Etcdutl, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	s.run(t, data)
}

// free is an address of this machine that nobody uses now.
func free(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// certificates writes an authority and one pair for server and client.
func certificates(t testing.TB, dir string) etcd.Files {
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

func (s *Server) tls(t testing.TB) *tls.Config {
	t.Helper()
	config, err := s.Files.Config()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// Client is ours.
func (s *Server) Client(t testing.TB) *etcd.Client {
	t.Helper()
	client, err := etcd.Open(t.Context(), etcd.Options{Endpoints: []string{s.Endpoint}, TLS: s.tls(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Raw is a client without anything of ours.
func (s *Server) Raw(t testing.TB) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint}, TLS: s.tls(t), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Put writes keys one by one and returns the last revision.
func Put(t testing.TB, raw *clientv3.Client, prefix string, from, to int) int64 {
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
