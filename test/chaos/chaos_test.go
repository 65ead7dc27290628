package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

const (
	namespace = "chaos"
	exports   = 200 // Services exported, over all members
	steady    = 60  // of them, never touched after the start
)

func TestKillAnythingAnytime(t *testing.T) {
	duration := envDuration(t, "LOCKSTEP_CHAOS_FOR", 45*time.Second)
	seed := envSeed(t)
	t.Logf("seed %d, %s of killing", seed, duration)

	binary, err := fleet.Binary()
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, labtest.Options{
		Clusters: []string{"leader", "east", "west"},
		Images:   map[string][]string{"lockstep": {binary}},
		Env:      []string{"LOCKSTEP_ALLOW_LOOPBACK=true", "LOCKSTEP_INTERVAL_SCALE=0.2"},
	})
	members := deploy(t, l, "east", "west", "leader")
	w := newWorld(seed, members)
	w.create(t)
	w.awaitConverged(t, 2*time.Minute)

	for _, watcher := range watchSteady(t, w) {
		defer watcher.verdict(t) // also when the end is not what it should be
	}
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	var tasks sync.WaitGroup
	tasks.Go(func() { w.churn(ctx, t) })
	var killed map[string]int
	tasks.Go(func() { killed = kill(ctx, t, l, rand.New(rand.NewPCG(seed, 2))) })
	tasks.Wait()
	t.Logf("killed: %v", killed)
	everyKind(t, killed, duration)

	w.settle(t)
	w.awaitConverged(t, 3*time.Minute)
	w.awaitQuiet(t)
}

// deploy installs every role as Pods, with these clusters as members. The first
// two export, the others only import.
func deploy(t *testing.T, l *lab.Lab, clusters ...string) []*fleet.Controller {
	t.Helper()
	// Pod addresses change with every Pod, so they show more than cluster IPs.
	podIPs := func(role config.Role, o *config.Options) {
		if role == config.Member {
			o.Configure = func(c *v1alpha1.MultiClusterConfig) { c.EndpointIPType = v1alpha1.EndpointIPTypePodIP }
		}
	}
	f := fleet.Deploy(t, l, "chaos", podIPs)
	var members []*fleet.Controller
	for _, name := range clusters {
		m := f.DeployMember(t, name, podIPs)
		fleet.Namespace(t, namespace, m.Cluster)
		members = append(members, m)
	}
	return members
}

func envDuration(t *testing.T, name string, otherwise time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

func envSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("LOCKSTEP_CHAOS_SEED")
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("LOCKSTEP_CHAOS_SEED: %v", err)
	}
	return seed
}

func name(i int) string { return fmt.Sprintf("svc-%03d", i) }
