package scenario_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/lab/relay"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// The controllers, as they are installed anywhere, tell Prometheus what they do:
// the story of one shared Service is read from their metrics alone.
//
// covers: WK-54
func TestMetricsTellTheStoryOfAService(t *testing.T) {
	binary, err := fleet.Binary()
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, labtest.Options{
		Clusters: []string{"leader", "east"},
		Images:   map[string][]string{"lockstep": {binary}},
		Env:      []string{"LOCKSTEP_ALLOW_LOOPBACK=true", "LOCKSTEP_INTERVAL_SCALE=0.2"},
	})
	served := func(_ config.Role, o *config.Options) {
		o.Configure = func(c *v1alpha1.MultiClusterConfig) { c.Metrics.BindAddress = fmt.Sprintf(":%d", fleet.MetricsPort) }
	}
	f := fleet.Deploy(t, l, "observed", served)
	east, hub := f.DeployMember(t, "east", served), f.DeployMember(t, "leader", served)
	ns := fleet.Namespace(t, "observed", east.Cluster, hub.Cluster)

	service := east.Service(t, ns, "web", ports, "10.61.0.1")
	east.Export(t, ns, "web")
	hub.AwaitImport(t, ns, "web", map[string][]string{"east": {service.Spec.ClusterIP}})
	tells(t, east, fleet.Samples{
		"lockstep_active": 1, "lockstep_leader_reachable": 1, "lockstep_leader_answering": 1, "lockstep_hold_active": 0,
		"lockstep_objects ServiceExport": 1, "lockstep_exports_not_ready Pending": 0, "lockstep_conflicts PortConflict": 0,
		"lockstep_api_writes_total done resourceexports leader create": 1,
		"lockstep_api_writes_total done endpointslices leader create":  1,
		// Its own export took no way.
		"lockstep_objects ServiceImport": 1, "lockstep_endpoints east true": 1,
	})
	seen := tells(t, hub, fleet.Samples{
		"lockstep_active": 1, "lockstep_objects ServiceImport": 1,
		"lockstep_endpoints east true": 1, "lockstep_import_latency_seconds_count east": 1,
	})
	if took := seen["lockstep_import_latency_seconds_sum east"]; took < 0 || took > fleet.Deadline.Seconds() {
		t.Errorf("the export took %v s", took)
	}
	seen = tells(t, f.Leader, fleet.Samples{
		"lockstep_active": 1, "lockstep_objects ResourceExport": 1, "lockstep_objects ResourceImport": 1,
		"lockstep_objects EndpointSlice": 1, "lockstep_objects MemberClusterAnnounce": 2, "lockstep_endpoints east true": 1,
	})
	for _, member := range []string{"east", "leader"} {
		if age := seen["lockstep_member_heartbeat_age_seconds "+member]; age < 0 || age > 30 {
			t.Errorf("the heartbeat of %q is %v s old", member, age)
		}
		if offset, ok := seen["lockstep_member_clock_offset_seconds "+member]; !ok || offset < -30 || offset > 1 {
			t.Errorf("the clock of %q, which is the leader's, is %v s ahead (%t)", member, offset, ok)
		}
	}
	for _, library := range []string{"workqueue_depth", "controller_runtime_reconcile_total", "rest_client_requests_total", "leader_election_master_status", "process_cpu_seconds_total"} {
		if len(seen.Of(library)) == 0 {
			t.Errorf("the leader does not tell %s", library)
		}
	}

	writesNothing(t, east, hub, f.Leader)
	contradicts(t, f, hub, ns)
	goesAway(t, f, east)
}

// tells waits until the metrics of a controller have some values.
func tells(t *testing.T, c *fleet.Controller, want fleet.Samples) (seen fleet.Samples) {
	t.Helper()
	fleet.Eventually(t, fmt.Sprintf("the metrics of %q in %q", c.Namespace, c.Name), func() (err error) {
		if seen, err = c.Scrape(t); err != nil {
			return err
		}
		return seen.Check(want)
	})
	return seen
}

// writesNothing: while nothing changes, only signs of life are written. It ends
// when three heartbeats of every member went by without anything else.
func writesNothing(t *testing.T, controllers ...*fleet.Controller) {
	t.Helper()
	const beat = "done memberclusterannounces leader update"
	for _, c := range controllers {
		var before fleet.Samples
		var beats float64
		fleet.Eventually(t, fmt.Sprintf("%q in %q writes nothing but signs of life", c.Namespace, c.Name), func() error {
			seen, err := c.Scrape(t)
			if err != nil {
				return err
			}
			writes := seen.Of("lockstep_api_writes_total")
			now := writes[beat] + writes["done leases own update"]
			maps.DeleteFunc(writes, func(labels string, _ float64) bool {
				return strings.Contains(labels, " memberclusterannounces ") || strings.Contains(labels, " leases ") ||
					strings.Contains(labels, " clustersets own ") // the member's memory of the leader
			})
			if before == nil || !maps.Equal(before, writes) {
				before, beats = writes, now
				return errors.New("something was written")
			}
			if now < beats+3 {
				return fmt.Errorf("%v signs of life went by", now-beats)
			}
			return nil
		})
	}
}

// contradicts: two clusters export other ports under one name.
func contradicts(t *testing.T, f *fleet.Fleet, hub *fleet.Controller, ns string) {
	t.Helper()
	other := []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 81}}
	hub.Service(t, ns, "web", other, "10.61.0.2")
	hub.Export(t, ns, "web")
	tells(t, f.Leader, fleet.Samples{"lockstep_conflicts PortConflict": 2, "lockstep_conflicts TypeConflict": 0, "lockstep_objects ResourceExport": 2})
	tells(t, hub, fleet.Samples{"lockstep_conflicts PortConflict": 1, "lockstep_exports_not_ready Failed": 0})
}

// goesAway: the way of a member to its leader is cut, and healed.
func goesAway(t *testing.T, f *fleet.Fleet, east *fleet.Controller) {
	t.Helper()
	east.Cut(t, relay.Refused)
	seen := tells(t, east, fleet.Samples{"lockstep_leader_reachable": 0, "lockstep_objects ServiceImport": 1})
	if failures := seen.Of("lockstep_api_errors_total"); failures["no_answer leader list"] == 0 {
		t.Errorf("no failed request is told: %v", failures)
	}
	last := seen["lockstep_heartbeat_acknowledged_timestamp_seconds"]
	if ago := time.Since(time.UnixMilli(int64(last * 1000))); ago < 0 || ago > 10*time.Minute {
		t.Errorf("the last heartbeat was taken %s ago", ago)
	}
	fleet.Eventually(t, "the leader sees the heartbeat of east grow old", func() error {
		seen, err := f.Leader.Scrape(t)
		if err == nil && seen["lockstep_member_heartbeat_age_seconds east"] < 6 {
			err = fmt.Errorf("it is %v s old", seen["lockstep_member_heartbeat_age_seconds east"])
		}
		return err
	})
	east.Heal(t)
	tells(t, east, fleet.Samples{"lockstep_leader_reachable": 1})
}
