package pair

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dev/lockstep/internal/proc"
)

const (
	prefix     = "/registry/configmaps/bench/"
	startTime  = time.Minute
	mirrorTime = 30 * time.Minute
)

// server is an etcd without TLS, for either contestant alike.
type server struct {
	*proc.Process
	url    string
	client *clientv3.Client
}

func (o Options) server(ctx context.Context, name string, flags ...string) (*server, error) {
	dir, err := os.MkdirTemp(o.Dir, name+"-")
	if err != nil {
		return nil, err
	}
	s := &server{}
	var peer string
	for _, url := range []*string{&s.url, &peer} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		*url = "http://" + listener.Addr().String()
		_ = listener.Close()
	}
	args := append([]string{
		"--name=one", "--data-dir=" + filepath.Join(dir, "data"), "--listen-client-urls=" + s.url, "--advertise-client-urls=" + s.url,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=one=" + peer,
		"--log-level=error", "--quota-backend-bytes=8589934592",
	}, flags...)
	if !o.Fsync {
		args = append(args, "--unsafe-no-fsync=true")
	}
	if s.Process, err = proc.Start(proc.Command{Name: name, Path: o.Etcd, Args: args, Dir: dir, Log: filepath.Join(dir, "log")}); err != nil {
		return nil, err
	}
	if s.client, err = clientv3.New(clientv3.Config{Endpoints: []string{s.url}, Logger: zap.NewNop()}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return s, s.WaitReady(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := s.client.Get(ctx, "ready")
		return err
	})
}

func (s *server) stop() {
	_ = s.client.Close()
	_ = s.Kill()
}

// value is a ConfigMap of about a KiB, as an API server stores custom resources.
func value(name string) string {
	head := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"bench","uid":"uid-of-%s"},"data":{"x":"`, name, name)
	return head + strings.Repeat("x", max(0, 1024-len(head)-4)) + `"}}`
}

// fill writes keys, a hundred at a time, several requests under way.
func (s *server) fill(ctx context.Context, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for from := 0; from < n; from += 100 {
		group.Go(func() error {
			var ops []clientv3.Op
			for i := from; i < min(n, from+100); i++ {
				name := fmt.Sprintf("c%07d", i)
				ops = append(ops, clientv3.OpPut(prefix+name, value(name)))
			}
			_, err := s.client.Txn(ctx).Then(ops...).Commit()
			return err
		})
	}
	return group.Wait()
}

// contestant is one of the two mirrors.
type contestant struct {
	name  string
	start func(o Options, from, to *server) (*proc.Process, error)
	// done tells whether the first copy is complete.
	done func(ctx context.Context, to *server, keys int64) (bool, error)
}

func contestants(o Options) []contestant {
	ours := contestant{"lockstep", startOurs, func(ctx context.Context, to *server, _ int64) (bool, error) {
		answer, err := to.client.Get(ctx, "/lockstep/mirror/checkpoint")
		return err == nil && len(answer.Kvs) == 1 && bytes.Contains(answer.Kvs[0].Value, []byte(`"mode":"steady"`)), err
	}}
	if o.Etcdctl == "" {
		return []contestant{ours}
	}
	return []contestant{ours, {"make-mirror", startTheirs, func(ctx context.Context, to *server, keys int64) (bool, error) {
		answer, err := to.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && answer.Count >= keys, err
	}}}
}

func startOurs(o Options, from, to *server) (*proc.Process, error) {
	dir, err := os.MkdirTemp(o.Dir, "mirror-")
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf("apiVersion: fleet.lockstep.dev/v1alpha1\nkind: MirrorConfig\nprimary: {endpoints: [%q]}\nstandby: {endpoints: [%q]}\nlease: {disabled: true}\nlisten: \"0\"\n", from.url, to.url)
	file := filepath.Join(dir, "mirror.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	return proc.Start(proc.Command{
		Name: "lockstep", Path: o.Lockstep, Args: []string{"run", "mirror", "--config", file}, Env: []string{"TMPDIR=" + dir},
		Dir: dir, Log: filepath.Join(dir, "log"),
	})
}

func startTheirs(o Options, from, to *server) (*proc.Process, error) {
	dir, err := os.MkdirTemp(o.Dir, "make-mirror-")
	if err != nil {
		return nil, err
	}
	return proc.Start(proc.Command{
		Name: "make-mirror", Path: o.Etcdctl, Args: []string{"--endpoints", from.url, "make-mirror", to.url}, Dir: dir, Log: filepath.Join(dir, "log"),
	})
}

// peak is the most memory a process has had, in MiB (VmHWM of proc_pid_status(5)).
func peak(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 64)
			return kib / 1024
		}
	}
	return 0
}
