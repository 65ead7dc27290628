package restore_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// The leader comes back from a backup that lacks exports, endpoints and ports,
// and still has an export that is gone. Nothing is lost, not even for a moment,
// and in the end everything is as before.
func TestLeaderFromABackup(t *testing.T) {
	for name, bump := range map[string]uint64{
		"plain":  0,
		"bumped": 1_000_000, // caches are told that their revision is gone, and list at once
	} {
		t.Run(name, func(t *testing.T) { leaderFromABackup(t, name, bump) })
	}
}

func leaderFromABackup(t *testing.T, name string, bump uint64) {
	p := newPair(t, name)
	ns := p.namespace
	fromEast, fromWest := []string{"e1", "e2", "e3"}, []string{"w1", "w2", "w3"}
	p.export(t, p.east, append(fromEast, "gone1", "both1")...)
	p.export(t, p.west, fromWest...)
	p.awaitAll(t, append(fromEast, "gone1", "both1"), fromWest)
	p.snapshot(t, p.Leader, name)

	p.export(t, p.east, "e4", "e5")
	p.export(t, p.west, "w4", "w5", "both1")
	more := append(ports, corev1.ServicePort{Name: "admin", Protocol: corev1.ProtocolTCP, Port: 8081})
	service := &corev1.Service{}
	service.Namespace, service.Name = ns, "e2"
	p.east.Change(t, service, func() { service.Spec.Ports = more })
	p.west.Endpoints(t, ns, "w1", ports, addressOf(p.west, "w1"), "10.60.2.201")
	p.west.Endpoints(t, ns, "w2", ports, "10.60.2.202")
	p.east.Unexport(t, ns, "gone1")

	fromEast = append(fromEast, "e4", "e5")
	settled := func() {
		t.Helper()
		p.awaitAll(t, fromEast, []string{"w3", "w4", "w5"})
		p.east.AwaitImport(t, ns, "w1", map[string][]string{"west": {addressOf(p.west, "w1"), "10.60.2.201"}})
		p.east.AwaitImport(t, ns, "w2", map[string][]string{"west": {"10.60.2.202"}})
		p.west.AwaitImport(t, ns, "both1", map[string][]string{"east": {p.clusterIP(t, "both1")}, "west": {addressOf(p.west, "both1")}})
		p.east.AwaitImport(t, ns, "both1", map[string][]string{"east": {addressOf(p.east, "both1")}, "west": {addressOf(p.west, "both1")}})
		fleet.Eventually(t, "the second port of e2 is in west", func() error { return checkPorts(t, p, "e2", 2) })
		p.west.AwaitNoImport(t, ns, "gone1")
		p.east.AwaitNoImport(t, ns, "gone1")
		p.awaitMerged(t)
	}
	settled()
	p.awaitBeats(t)

	names := append(append([]string{"both1"}, fromEast...), "w1", "w2", "w3", "w4", "w5")
	witnesses := map[string]*fleet.Witness{}
	for _, m := range p.members() {
		witnesses[m.ID] = m.Watch(t, ns, names...)
	}
	p.restoreLeader(t, name, bump)
	for _, m := range p.members() {
		awaitNoticed(t, m, witnesses[m.ID])
	}
	for _, m := range p.members() {
		awaitTrust(t, m)
	}
	settled()
	for _, w := range witnesses {
		w.Verdict(t)
	}
}

func checkPorts(t *testing.T, p pair, name string, want int) error {
	seen, err := p.west.Import(t, p.namespace, name)
	if err != nil {
		return err
	}
	if seen.Import == nil || len(seen.Import.Spec.Ports) != want {
		return fmt.Errorf("the import is %+v", seen.Import)
	}
	return nil
}
