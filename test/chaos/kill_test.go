package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
)

// victim is one kind of thing to kill, and where it runs.
type victim struct {
	kind, target string
	clusters     []string
}

var everywhere = []string{"leader", "east", "west"}

// victims in the shares in which they die: members twice as often as the rest.
var victims = []victim{
	{"etcd", lab.Etcd, everywhere},
	{"API server", lab.APIServer, everywhere},
	{"controller manager", lab.ControllerManager, everywhere},
	{"member", "kube-system/antrea-mc-controller", everywhere},
	{"member", "kube-system/antrea-mc-controller", everywhere},
	{"leader", "antrea-multicluster/antrea-mc-controller", []string{"leader"}},
}

// fullRound is how long it takes, at the most, to come to every kind once: six
// pauses of up to four seconds, and as much again for what was not up just then.
const fullRound = 45 * time.Second

// kill ends one thing after the other with SIGKILL until ctx is done, and tells how
// many of each kind. Who supervises it starts it again, as on a real machine;
// sometimes the next kill comes before it is back. The order is random, and yet
// each round comes to every kind.
func kill(ctx context.Context, t *testing.T, l *lab.Lab, random *rand.Rand) map[string]int {
	kills := map[string]int{}
	for {
		for _, i := range random.Perm(len(victims)) {
			v := victims[i]
			cluster := labtest.Cluster(t, l, v.clusters[random.IntN(len(v.clusters))])
			for died := false; !died; {
				select {
				case <-ctx.Done():
					return kills
				case <-time.After(time.Duration(1000+random.IntN(3000)) * time.Millisecond):
				}
				var err error
				if died, err = killOne(ctx, cluster, v.target); err != nil && ctx.Err() == nil {
					t.Errorf("%s of %s was to be killed: %v", v.kind, cluster.Name(), err)
					return kills
				}
			}
			kills[v.kind]++
		}
	}
}

// killOne tells whether something died. It is no error that there is nothing to
// kill, because the last kill is not long ago.
func killOne(ctx context.Context, cluster *lab.Cluster, target string) (died bool, err error) {
	before, err := processes(ctx, cluster, target)
	if len(before) == 0 {
		return false, err
	}
	failed := cluster.Kill(ctx, target)
	if failed == nil {
		return true, nil
	}
	after, err := processes(ctx, cluster, target)
	if alive := slices.DeleteFunc(before, func(pid int) bool { return !slices.Contains(after, pid) }); err == nil && len(alive) > 0 {
		return false, fmt.Errorf("%w; processes %v are alive", failed, alive)
	}
	return false, err // it had gone by itself
}

// processes are those of a component, or of the Pods of ours that a target means.
func processes(ctx context.Context, cluster *lab.Cluster, target string) (pids []int, err error) {
	status, err := cluster.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range status.Components {
		if c.Name == target && c.Pid != 0 {
			pids = append(pids, c.Pid)
		}
	}
	for _, p := range status.Pods {
		if p.Pid != 0 && strings.HasPrefix(p.Namespace+"/"+p.Pod, target) {
			pids = append(pids, p.Pid)
		}
	}
	return pids, nil
}

// everyKind demands of a run that is long enough that it killed every kind: what
// survived because nobody killed anything proves nothing.
func everyKind(t *testing.T, killed map[string]int, duration time.Duration) {
	t.Helper()
	if duration < fullRound {
		return
	}
	for _, v := range victims {
		if killed[v.kind] == 0 {
			t.Errorf("no %s was killed in %s: %v", v.kind, duration, killed)
		}
	}
}
