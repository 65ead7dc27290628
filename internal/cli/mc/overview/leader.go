package overview

import (
	"fmt"
)

// Leader is the leader's side of a ClusterSet.
type Leader struct {
	ClusterID string `json:"clusterID"`
	// Context it was read through; "" when none of the contexts leads there.
	Context   string `json:"context,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Ready     State  `json:"ready"`
	// MembersReady of Members are connected, in the leader's eyes.
	MembersReady int32 `json:"membersReady"`
	Members      int32 `json:"members"`
}

func (p *page) leaderRow() Leader {
	row := Leader{ClusterID: p.leader, Namespace: p.area}
	if p.lead == nil {
		return row
	}
	set := p.lead.set
	row.Context, row.Ready = p.lead.cluster.Context, overall(set)
	row.MembersReady, row.Members = set.Status.ReadyClusters, set.Status.TotalClusters
	if !takenUp(set) {
		p.problem("", fmt.Sprintf("no leader controller serves ClusterSet %q", p.name),
			"its status was not written",
			"see that the leader controller runs: "+p.lead.kubectl("get pods"))
	}
	return row
}
