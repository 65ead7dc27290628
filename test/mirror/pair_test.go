package mirror_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/lab/etcdtest"
	"github.com/lockstep-dev/lockstep/internal/mirror/setting"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
	"github.com/lockstep-dev/lockstep/internal/proc"
)

// patience bounds what has to happen on a machine that is busy with other tests.
const patience = 2 * time.Minute

const keys = "/registry/configmaps/shop/"

// pair is a primary's and a standby's etcd, and how a mirror reaches them.
type pair struct {
	t        *testing.T
	from, to *clientv3.Client
	setting  setting.Config
	dir      string
}

// newPair starts two etcds; flags are those of the standby's.
func newPair(t *testing.T, flags ...string) *pair {
	t.Helper()
	primary, standby := etcdtest.Start(t), etcdtest.Start(t, flags...)
	return join(t, side(primary), side(standby), primary.Raw(t), standby.Raw(t))
}

func join(t *testing.T, primary, standby setting.Side, from, to *clientv3.Client) *pair {
	t.Helper()
	p := &pair{t: t, from: from, to: to, dir: t.TempDir()}
	p.setting.APIVersion, p.setting.Kind = setting.APIVersion, setting.Kind
	p.setting.Primary, p.setting.Standby = primary, standby
	p.setting.Lease.Disabled = true
	return p
}

func side(s *etcdtest.Server) setting.Side {
	return setting.Side{Endpoints: []string{s.Endpoint}, CAFile: s.Files.CA, CertFile: s.Files.Cert, KeyFile: s.Files.Key}
}

// reversed is the same pair in the other direction.
func (p *pair) reversed() *pair {
	r := join(p.t, p.setting.Standby, p.setting.Primary, p.to, p.from)
	return r
}

// daemon is a process of the mirror.
type daemon struct {
	*proc.Process
	pair *pair
	url  string
}

// file writes the configuration of one daemon.
func (p *pair) file(listen string) string {
	p.t.Helper()
	c := p.setting
	c.Listen = listen
	text, err := yaml.Marshal(c)
	if err != nil {
		p.t.Fatal(err)
	}
	name := filepath.Join(p.dir, strings.ReplaceAll("mirror-"+listen+".yaml", ":", "-"))
	if err := os.WriteFile(name, text, 0o600); err != nil {
		p.t.Fatal(err)
	}
	return name
}

// start starts a mirror. Daemons of one name are lives of one Pod.
func (p *pair) start(pod string) *daemon {
	p.t.Helper()
	return p.startIn(pod, "")
}

// startIn starts one that is elected in a cluster.
func (p *pair) startIn(pod, kubeconfig string) *daemon {
	p.t.Helper()
	return p.startRole(pod, "mirror", kubeconfig)
}

func (p *pair) startRole(pod, role, kubeconfig string) *daemon {
	p.t.Helper()
	address := freeAddress(p.t)
	program, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	log := filepath.Join(p.dir, pod+".log")
	process, err := proc.Start(proc.Command{
		Name: "mirror", Path: program, Args: []string{"run", role, "--config", p.file(address), "--log-level", "debug"},
		Env: []string{asProgram + "=1", "POD_NAME=" + pod, "POD_UID=1", "POD_IP=127.0.0.1", "KUBECONFIG=" + kubeconfig, "TMPDIR=" + p.dir}, Dir: p.dir, Log: log,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	d := &daemon{process, p, "http://" + address}
	p.t.Cleanup(func() {
		_ = d.Kill()
		if p.t.Failed() {
			text, _ := os.ReadFile(log)
			p.t.Logf("log of %s:\n%s", pod, text[max(0, len(text)-6000):])
		}
	})
	return d
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// get asks the daemon; status 0 when it does not answer.
func (d *daemon) get(path string) (status int, body string) {
	d.pair.t.Helper()
	ctx, cancel := context.WithTimeout(d.pair.t.Context(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+path, nil)
	if err != nil {
		d.pair.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// metric is the value of one line of /metrics; empty when it is not there.
func (d *daemon) metric(name string) string {
	_, body := d.get("/metrics")
	for line := range strings.SplitSeq(body, "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return value
		}
	}
	return ""
}

// await waits until check returns nil.
func (p *pair) await(what string, check func() error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

// checkpoint of the standby; the zero value when there is none.
func (p *pair) checkpoint() (c replica.Checkpoint) {
	p.t.Helper()
	answer, err := p.to.Get(p.t.Context(), etcd.CheckpointKey)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, kv := range answer.Kvs {
		if c, err = replica.ParseCheckpoint(kv.Value); err != nil {
			p.t.Fatal(err)
		}
	}
	return c
}

func (p *pair) head() int64 {
	p.t.Helper()
	answer, err := p.from.Get(p.t.Context(), "head")
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.Header.Revision
}

// awaitCopied waits until the standby has all that the primary has now.
func (p *pair) awaitCopied() {
	p.t.Helper()
	head := p.head()
	p.await("the standby has not caught up", func() error {
		if c := p.checkpoint(); c.Mode != replica.Steady || c.Rev < head {
			return fmt.Errorf("it says %s, and the primary is at %d", c.Encode(), head)
		}
		return nil
	})
}

// everything below the prefix of Kubernetes, in one request.
func everything(t *testing.T, client *clientv3.Client) map[string][]byte {
	t.Helper()
	answer, err := client.Get(t.Context(), "/registry/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, kv := range answer.Kvs {
		all[string(kv.Key)] = kv.Value
	}
	return all
}

// differences are told without the mirror's reads, cuts and comparisons: both
// sides are read as a whole while nobody writes.
func (p *pair) differences() (found []string) {
	p.t.Helper()
	from, to := everything(p.t, p.from), everything(p.t, p.to)
	mirrored := func(key string, value []byte) bool { return replica.Mirrored(selection.Rules{}, key, value) }
	for key, value := range from {
		switch got, here := to[key]; {
		case !mirrored(key, value):
		case !here:
			found = append(found, "missed "+key)
		case !bytes.Equal(got, value):
			found = append(found, "differs "+key)
		}
	}
	for key, value := range to {
		if _, there := from[key]; !there && mirrored(key, value) {
			found = append(found, "surplus "+key)
		}
	}
	slices.Sort(found)
	return found
}

// mustBeEqual waits for the standby and compares.
func (p *pair) mustBeEqual() {
	p.t.Helper()
	p.awaitCopied()
	if found := p.differences(); len(found) > 0 {
		p.t.Fatalf("%d keys are not equal: %q", len(found), found[:min(10, len(found))])
	}
}

// object is a value as an API server stores it.
func object(name, uid string, size int, owners ...string) string {
	var refs []string
	for _, owner := range owners {
		refs = append(refs, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q}`, owner, owner))
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"shop","uid":%q,"ownerReferences":[%s]},"data":{"x":%q}}`,
		name, uid, strings.Join(refs, ","), strings.Repeat("x", size))
}

// fill writes objects, a hundred at a time.
func (p *pair) fill(from, to, size int) {
	p.t.Helper()
	for from < to {
		var ops []clientv3.Op
		for ; from < to && len(ops) < 100; from++ {
			name := fmt.Sprintf("c%06d", from)
			ops = append(ops, clientv3.OpPut(keys+name, object(name, name, size)))
		}
		if _, err := p.from.Txn(p.t.Context()).Then(ops...).Commit(); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *pair) put(key, value string) {
	p.t.Helper()
	if _, err := p.from.Put(p.t.Context(), key, value); err != nil {
		p.t.Fatal(err)
	}
}
