package overview

import (
	"fmt"
	"time"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// Ages of a heartbeat that mean something.
const (
	// expiry is when the sweep of an upstream leader deletes an announce and all its
	// exports. Ours goes by its own clock, and says so before (checkSilence).
	expiry = 24 * time.Hour
	// nearExpiry leaves half a day to do something about it (UPG-CHK-8).
	nearExpiry = 12 * time.Hour
)

// checkMember rings once for one cause: what the member itself says explains
// its silence, so the leader's view counts only where the member was not read.
func (p *page) checkMember(row Member, s sides) {
	told := p.checkSilence(row)
	if s.announce != nil && !told {
		p.checkClock(row)
	}
	m := s.membership
	if m == nil {
		if !told {
			p.checkHeard(row)
		}
		return
	}
	if !p.checkConnected(row, *m) && s.announce == nil && p.lead != nil {
		p.problem("", fmt.Sprintf("leader %q does not know member %q", p.leader, row.ClusterID),
			"no announce of it is in the common area",
			"see what the member says: "+m.kubectl("get clusterset %s -o yaml", m.set.Name))
	}
	p.checkHold(*m)
	p.checkUID(*m)
}

// checkClock looks at what the time of a heartbeat means by itself.
func (p *page) checkClock(row Member) {
	age, ok := row.age()
	switch {
	case ok && age > nearExpiry:
		p.problem("UPG-CHK-8", fmt.Sprintf("member %q is about to lose its exports", row.ClusterID),
			fmt.Sprintf("its last heartbeat is of %s; an upstream leader deletes them after %s", row.beat(), short(expiry)),
			p.revive(row))
	case ok && age < -clusterset.BeatTimeout:
		p.problem("UPG-CHK-8", fmt.Sprintf("the clock of member %q is ahead", row.ClusterID),
			"its last heartbeat is of "+row.beat(), "set the clocks of all clusters, by NTP")
	}
}

// checkHeard looks at a member through the leader alone.
func (p *page) checkHeard(row Member) {
	age, ok := row.age()
	if age > nearExpiry || (row.LeaderSees.isTrue() && (!ok || age <= clusterset.BeatTimeout)) {
		return // told by checkClock, or well
	}
	why := row.LeaderSees.why()
	if ok && row.LeaderSees.Message == "" {
		why = "its last heartbeat is of " + row.beat()
	}
	p.problem("UPG-CHK-8", fmt.Sprintf("member %q is silent", row.ClusterID), why,
		p.revive(row))
}

func (p *page) revive(row Member) string {
	return "see its member controller and its way to the leader; if the cluster is gone for good: " +
		p.lead.kubectl("delete memberclusterannounce member-announce-from-%s", row.ClusterID)
}

// checkConnected looks at the member's own side and tells whether it has told
// of a problem.
func (p *page) checkConnected(row Member, m membership) bool {
	age, heard := row.age()
	switch {
	case !m.set.DeletionTimestamp.IsZero():
		p.problem("", fmt.Sprintf("member %q is leaving", row.ClusterID), row.MemberSees.why(),
			fmt.Sprintf("wait, or end it: lockstep mc leave --clusterset %s -n %s --context %s --force", p.name, m.set.Namespace, m.cluster.Context))
	case !takenUp(m.set):
		p.problem("", fmt.Sprintf("no member controller serves ClusterSet %q in cluster %q", p.name, row.ClusterID),
			"its status was not written", "see that the member controller runs: "+m.kubectl("get pods"))
	case !row.MemberSees.isTrue():
		p.problem("", fmt.Sprintf("member %q has no connection to leader %q", row.ClusterID, p.leader), row.MemberSees.why(),
			"do what the reason asks for; the member controller tries again by itself")
	case !overall(m.set).isTrue():
		p.problem("", fmt.Sprintf("leader %q does not answer member %q", p.leader, row.ClusterID), overall(m.set).why(),
			"see that the leader controller runs and serves this ClusterSet")
	case heard && age > clusterset.BeatTimeout:
		p.problem("UPG-CHK-27", fmt.Sprintf("member %q says it is connected, but its heartbeat does not arrive", row.ClusterID),
			"the last one is of "+row.beat(), "restart the member controller; it is one of: "+m.kubectl("get pods"))
	default:
		return false
	}
	return true
}

// beat is the time of the last heartbeat, as everybody reads times.
func (m Member) beat() string { return m.Heartbeat.UTC().Format(time.RFC3339) }

// checkHold tells of a common area that went back in time.
func (p *page) checkHold(m membership) {
	if since := clusterset.ReadMemory(m.set.Annotations).HoldSince; since != nil {
		p.problem("", fmt.Sprintf("member %q withdraws nothing", m.clusterID()),
			fmt.Sprintf("the common area went back to an earlier state at %s, and not every cluster has published again", since.UTC().Format(time.RFC3339)),
			fmt.Sprintf("bring the missing clusters back, or accept the common area as it is: lockstep mc accept-leader --clusterset %s -n %s --context %s", p.name, m.set.Namespace, m.cluster.Context))
	}
}

// checkUID finds a second cluster that claims the ID.
func (p *page) checkUID(m membership) {
	for _, a := range p.announces() {
		uid := a.Annotations[v1alpha1.AnnotationClusterUID]
		if a.ClusterID == m.clusterID() && uid != "" && m.cluster.UID != "" && uid != string(m.cluster.UID) {
			p.problem("", fmt.Sprintf("cluster ID %q is claimed twice", m.clusterID()),
				fmt.Sprintf("the announce is of another cluster than the one behind context %q", m.cluster.Context),
				"let one of the two leave, and join it with another ID")
		}
	}
}
