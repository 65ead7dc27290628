package crash_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// Services of the story. Nobody touches the two steady ones between their export
// and the leave of their cluster.
const (
	web        = "web"
	steadyEast = "steady-east"
	steadyWest = "steady-west"
)

var (
	http80   = []corev1.ServicePort{fleet.HTTP}
	http81   = []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 81}}
	twoPorts = []corev1.ServicePort{fleet.HTTP, {Name: "admin", Protocol: corev1.ProtocolTCP, Port: 8081}}
)

// chapter is something that users do, and what has to come of it.
type chapter struct {
	name string
	do   func(*testing.T, *world)
	then func(*testing.T, *world)
}

// story is what every run tells. East exports addresses of Services and lives in
// the leader's cluster; west exports those of Pods.
var story = []chapter{
	{"both join", func(t *testing.T, w *world) {
		w.east.Request(t)
		w.west.Request(t)
	}, func(t *testing.T, w *world) {
		w.east.AwaitReady(t)
		w.west.AwaitReady(t)
	}},
	{"each has a gateway", func(t *testing.T, w *world) {
		w.east.Node(t, "e1", "192.0.2.11")
		w.west.Node(t, "w1", "192.0.2.21")
	}, func(t *testing.T, w *world) {
		w.networks = map[string]types.UID{
			"west": w.knows(t, w.west, "east", "192.0.2.11"),
			"east": w.knows(t, w.east, "west", "192.0.2.21"),
		}
	}},
	{"exports are created", func(t *testing.T, w *world) {
		w.offer(t, w.east, steadyEast, http80, "10.60.1.1", "10.60.1.2")
		w.offer(t, w.west, steadyWest, http80, "10.60.2.1", "10.60.2.2")
		w.offer(t, w.east, web, http80, "10.60.1.3")
	}, func(t *testing.T, w *world) {
		w.imported(t, w.west, steadyEast, ready{"east": {w.ip(t, steadyEast)}})
		w.imported(t, w.east, steadyWest, ready{"west": {"10.60.2.1", "10.60.2.2"}})
		w.imported(t, w.west, web, ready{"east": {w.ip(t, web)}})
		w.watch(t)
	}},
	{"a gateway fails", func(t *testing.T, w *world) {
		w.east.Node(t, "e2", "192.0.2.12")
		w.fail(t, w.east, "e1")
	}, func(t *testing.T, w *world) {
		w.east.AwaitGateway(t, "e2")
		if uid := w.knows(t, w.west, "east", "192.0.2.12"); uid != w.networks["west"] {
			t.Error("what west knows of the network of east went and came")
		}
	}},
	{"an export changes", func(t *testing.T, w *world) {
		w.ports(t, w.east, web, twoPorts)
		w.east.Endpoints(t, w.namespace, web, twoPorts, "10.60.1.3", "10.60.1.4")
	}, func(t *testing.T, w *world) {
		w.imported(t, w.east, web, ready{"east": {"10.60.1.3", "10.60.1.4"}})
		w.hasPorts(t, w.west, web, 2)
	}},
	{"a second exporter is merged", func(t *testing.T, w *world) {
		w.awaitOlder(t, w.east, web)
		w.offer(t, w.west, web, http80, "10.60.2.3")
	}, func(t *testing.T, w *world) {
		w.imported(t, w.west, web, ready{"east": {w.ip(t, web)}, "west": {"10.60.2.3"}})
	}},
	{"the exporters conflict", func(t *testing.T, w *world) {
		w.ports(t, w.west, web, http81)
		w.west.Endpoints(t, w.namespace, web, http81, "10.60.2.3", "10.60.2.4")
	}, func(t *testing.T, w *world) {
		for _, m := range w.members() {
			m.AwaitExport(t, w.namespace, web, mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonPortConflict)
		}
		w.imported(t, w.west, web, ready{"east": {w.ip(t, web)}})
	}},
	{"the older export is withdrawn", func(t *testing.T, w *world) {
		w.east.Unexport(t, w.namespace, web)
	}, func(t *testing.T, w *world) {
		w.imported(t, w.east, web, ready{"west": {"10.60.2.3", "10.60.2.4"}})
		w.hasPorts(t, w.east, web, 1)
	}},
	{"the last export is withdrawn", func(t *testing.T, w *world) {
		w.west.Unexport(t, w.namespace, web)
	}, func(t *testing.T, w *world) {
		w.east.AwaitNoImport(t, w.namespace, web)
		w.west.AwaitNoImport(t, w.namespace, web)
		w.quiet(t)
	}},
	{"the last gateway fails", func(t *testing.T, w *world) {
		w.fail(t, w.east, "e2")
	}, func(t *testing.T, w *world) {
		w.east.AwaitGateway(t, "")
		w.forgot(t, w.west, "east")
		if uid := w.knows(t, w.east, "west", "192.0.2.21"); uid != w.networks["east"] {
			t.Error("what east knows of the network of west went and came")
		}
	}},
	{"a member leaves", func(t *testing.T, w *world) {
		w.release(w.east, steadyEast, steadyWest)
		w.release(w.west, steadyEast)
		w.leave(t, w.east)
	}, func(t *testing.T, w *world) {
		w.gone(t, w.east)
		w.forgot(t, w.east, "west")
		w.west.AwaitNoImport(t, w.namespace, steadyEast)
		w.east.AwaitNoImport(t, w.namespace, steadyWest)
		w.imported(t, w.west, steadyWest, ready{"west": {"10.60.2.1", "10.60.2.2"}})
	}},
	{"the other leaves", func(t *testing.T, w *world) {
		w.release(w.west, steadyWest)
		w.leave(t, w.west)
	}, func(t *testing.T, w *world) {
		w.gone(t, w.west)
		w.west.AwaitGateway(t, "")
		w.west.AwaitNoImport(t, w.namespace, steadyWest)
	}},
}

type ready = map[string][]string

func (w *world) offer(t *testing.T, m *fleet.Controller, name string, ports []corev1.ServicePort, addresses ...string) {
	t.Helper()
	m.Service(t, w.namespace, name, ports, addresses...)
	m.Export(t, w.namespace, name)
}

func (w *world) service(t *testing.T, m *fleet.Controller, name string) *corev1.Service {
	t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if err := m.Get(t.Context(), keyOf(service), service); err != nil {
		t.Fatal(err)
	}
	return service
}

// awaitOlder waits until whatever is exported now is younger than that export, so
// that every run tells of the same winner. Times of creation have whole seconds.
func (w *world) awaitOlder(t *testing.T, m *fleet.Controller, name string) {
	t.Helper()
	export := &mcsv1beta1.ServiceExport{}
	if err := m.Get(t.Context(), keyOf(w.service(t, m, name)), export); err != nil {
		t.Fatal(err)
	}
	fleet.Eventually(t, "another second", func() error {
		if time.Since(export.CreationTimestamp.Time) < time.Second {
			return errors.New("it is still the same one")
		}
		return nil
	})
}

// ip is what east exports of a Service.
func (w *world) ip(t *testing.T, name string) string {
	t.Helper()
	return w.service(t, w.east, name).Spec.ClusterIP
}

func (w *world) ports(t *testing.T, m *fleet.Controller, name string, ports []corev1.ServicePort) {
	t.Helper()
	service := w.service(t, m, name)
	m.Change(t, service, func() { service.Spec.Ports = ports })
}

func (w *world) imported(t *testing.T, m *fleet.Controller, name string, ready ready) {
	t.Helper()
	m.AwaitImport(t, w.namespace, name, ready)
}

func (w *world) hasPorts(t *testing.T, m *fleet.Controller, name string, want int) {
	t.Helper()
	fleet.Eventually(t, fmt.Sprintf("%s has %d ports in %s", name, want, m.ID), func() error {
		seen, err := m.Import(t, w.namespace, name)
		if err == nil && (seen.Import == nil || len(seen.Import.Spec.Ports) != want) {
			err = fmt.Errorf("the import is %+v", seen.Import)
		}
		return err
	})
}

// watch begins to watch the steady imports, wherever they are.
func (w *world) watch(t *testing.T) {
	t.Helper()
	w.imported(t, w.west, steadyWest, ready{"west": {"10.60.2.1", "10.60.2.2"}})
	w.imported(t, w.east, steadyEast, ready{"east": {"10.60.1.1", "10.60.1.2"}})
	w.witnesses = map[string]*fleet.Witness{}
	for _, m := range w.members() {
		w.witnesses[m.ID] = m.Watch(t, w.namespace, steadyEast, steadyWest)
	}
}

func (w *world) release(m *fleet.Controller, names ...string) {
	for _, name := range names {
		w.witnesses[m.ID].Release(name)
	}
}

// quiet waits until everybody is at work and nothing was written over two
// heartbeats of each member, and sees that nothing is over another one. Heartbeats
// are counted, not seconds: a role that was just killed, or a busy machine, still
// has something to say that is no noise.
func (w *world) quiet(t *testing.T) {
	t.Helper()
	var calm []sign
	fleet.Within(t, patience, "nothing is written over two heartbeats of each member", func() error {
		var now []sign
		for _, p := range w.roles {
			now = append(now, p.sign())
		}
		for i, s := range now {
			switch {
			case calm == nil, s.life != calm[i].life, s.writes != calm[i].writes:
				calm = now
				return fmt.Errorf("%s wrote something or started", w.roles[i].name)
			case !s.holds:
				return fmt.Errorf("%s holds no lease", w.roles[i].name)
			case w.roles[i].name != "leader" && s.beats < calm[i].beats+2:
				return fmt.Errorf("%s beat %d times since", w.roles[i].name, s.beats-calm[i].beats)
			}
		}
		return nil
	})
	fleet.Steadily(t, heartbeat, "nothing is written when nothing changes", func() error {
		for i, p := range w.roles {
			if writes, _, _ := p.report(); len(writes) > calm[i].writes {
				return fmt.Errorf("%s did %v", p.name, writes[calm[i].writes:])
			}
		}
		return nil
	})
}

func (w *world) leave(t *testing.T, m *fleet.Controller) {
	t.Helper()
	if err := m.Delete(t.Context(), m.Set()); err != nil {
		t.Fatal(err)
	}
}

func (w *world) gone(t *testing.T, m *fleet.Controller) {
	t.Helper()
	fleet.Eventually(t, m.ID+" has left", func() error {
		if _, err := m.ReadSet(t); err == nil {
			return errors.New("its ClusterSet is still there")
		}
		if _, err := w.Announce(t, m.ID); err == nil {
			return errors.New("its announce is still there")
		}
		return nil
	})
}
