package chaos_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// clockwork is what a clock brings in any cluster, whether or not we are there.
var clockwork = []string{"/registry/leases/", "/registry/masterleases/", "/registry/peerserverleases/", "/registry/events/", "/registry/minions/"}

// follower sees everything that is written to the etcd of a cluster.
type follower struct {
	mu     sync.Mutex
	texts  map[string]string // by key, without what ticks
	writes []string
	err    error
}

// follow begins with what is stored now.
func follow(t *testing.T, c *lab.Cluster) *follower {
	t.Helper()
	etcd, err := c.EtcdClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now, err := etcd.Get(t.Context(), "/registry/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{texts: map[string]string{}}
	for _, kv := range now.Kvs {
		f.texts[string(kv.Key)] = fleet.WithoutTicks(string(kv.Value))
	}
	ctx, cancel := context.WithCancel(t.Context())
	events := etcd.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(now.Header.Revision+1))
	var following sync.WaitGroup
	following.Go(func() {
		for response := range events {
			f.see(response, ctx.Err() != nil)
		}
	})
	t.Cleanup(func() { cancel(); following.Wait(); etcd.Close() })
	return f
}

func (f *follower) see(response clientv3.WatchResponse, ending bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := response.Err(); err != nil && !ending {
		f.err = err
	}
	for _, event := range response.Events {
		key, text := string(event.Kv.Key), fleet.WithoutTicks(string(event.Kv.Value))
		if before, known := f.texts[key]; known && before == text && event.Type == clientv3.EventTypePut {
			continue // a heartbeat
		}
		f.texts[key] = text
		if !ticking(key) {
			f.writes = append(f.writes, event.Type.String()+" "+key)
		}
	}
}

func ticking(key string) bool {
	for _, prefix := range clockwork {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

func (f *follower) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.writes...)
}

func (f *follower) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
