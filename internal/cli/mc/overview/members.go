package overview

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// Member is one cluster of the set, from both sides.
type Member struct {
	ClusterID string `json:"clusterID"`
	// Context it was read through; "" when none of the contexts leads there.
	Context string `json:"context,omitempty"`
	// LeaderSees and MemberSees are the two views of one connection.
	LeaderSees State `json:"leaderSees"`
	MemberSees State `json:"memberSees"`
	// Heartbeat is the time of the last one, by the member's clock.
	Heartbeat *time.Time `json:"heartbeat,omitempty"`
	// HeartbeatAge in seconds, by the clock of who looks; negative when the
	// member's clock is ahead.
	HeartbeatAge *int64 `json:"heartbeatAgeSeconds,omitempty"`
	// Lease is when a member of ours renewed its Lease last, by its own clock, and
	// LeaseAge the age of that in seconds, by the clock of who looks.
	Lease    *time.Time `json:"lease,omitempty"`
	LeaseAge *int64     `json:"leaseAgeSeconds,omitempty"`
	// SilentSince, of a member that the leader does not hear: the last sign of
	// life, by the leader's clock.
	SilentSince *time.Time `json:"silentSince,omitempty"`
	// Lost is what importers do with its endpoints, once the member counts as lost.
	Lost string `json:"lost,omitempty"`
	// CleanUpAt is when all it exports is deleted, once that is announced;
	// CleanUpHeld tells that an administrator does not let it.
	CleanUpAt   *time.Time `json:"cleanUpAt,omitempty"`
	CleanUpHeld bool       `json:"cleanUpHeld,omitempty"`
	// Peer is the version of our exchange the member speaks; "" is upstream's.
	Peer string `json:"peer,omitempty"`
	// Exchange is how endpoints travel between the leader and this member.
	Exchange string `json:"exchange,omitempty"`
	Exports  int    `json:"exports"`
	Imports  int    `json:"imports"`
	// Network of a member that has a gateway.
	Network *Network `json:"network,omitempty"`
}

// sides is a member as the leader and as the member itself know it. Either may
// be nil.
type sides struct {
	id         string
	announce   *v1alpha1.MemberClusterAnnounce
	membership *membership
}

// members joins announces and memberships by cluster ID. A second cluster that
// claims an ID gets a row of its own.
func (p *page) members() []Member {
	var all []sides
	for _, announce := range p.announces() {
		all = append(all, sides{id: announce.ClusterID, announce: &announce})
	}
	for _, m := range p.memberships {
		i := slices.IndexFunc(all, func(s sides) bool { return s.id == m.clusterID() && s.membership == nil })
		if i < 0 {
			all, i = append(all, sides{id: m.clusterID()}), len(all)
		}
		all[i].membership = &m
	}
	slices.SortStableFunc(all, func(a, b sides) int { return cmp.Compare(a.id, b.id) })
	rows := make([]Member, 0, len(all))
	for _, s := range all {
		row := p.memberRow(s)
		p.checkMember(row, s)
		rows = append(rows, row)
	}
	return rows
}

func (p *page) memberRow(s sides) Member {
	row := Member{ClusterID: s.id, Network: p.network(s.id)}
	if s.announce != nil {
		row.LeaderSees = readiness(p.lead.set, s.id)
		row.Peer = s.announce.Annotations[v1alpha1.AnnotationPeer]
		row.Exchange = string(clusterset.ReadAnswer(s.announce).Exchange)
		if touched, err := time.Parse(time.RFC3339, s.announce.Annotations[v1alpha1.AnnotationTouch]); err == nil {
			age := int64(p.now.Sub(touched) / time.Second)
			row.Heartbeat, row.HeartbeatAge = &touched, &age
		}
		p.silence(&row, s.announce)
	}
	if m := s.membership; m != nil {
		row.Context = m.cluster.Context
		row.MemberSees = readiness(m.set, p.leader)
		row.Exports, row.Imports = len(m.cluster.ServiceExports), len(m.cluster.ServiceImports)
	}
	return row
}

// age of the last heartbeat; ok is false when none is known.
func (m Member) age() (age time.Duration, ok bool) {
	if m.HeartbeatAge == nil {
		return 0, false
	}
	return time.Duration(*m.HeartbeatAge) * time.Second, true
}
