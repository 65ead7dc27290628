package fabric

import (
	"fmt"
	"strings"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// Reasons of conditions about a network.
const (
	// ReasonOverlap: addresses are claimed by two clusters.
	ReasonOverlap = clusterset.ReasonCIDROverlap
	// ReasonInvalid: what a cluster says of its network cannot be used.
	ReasonInvalid = "InvalidClusterInfo"
	// ReasonImported: nothing speaks against the network.
	ReasonImported = "Imported"
)

// toldAtMost is how many overlaps of one cluster a message names: one cluster
// that claims everything overlaps with everybody.
const toldAtMost = 3

// Conflicts tells, for each cluster whose claims overlap with those of another,
// with which: one sentence for a condition. In the eyes of the cluster named self
// it is "this cluster"; a leader is none of them and names nobody self.
func Conflicts(infos []v1alpha1.ClusterInfo, self string) map[string]string {
	var claims []Claim
	for _, info := range infos {
		readable, _ := ClaimsOf(info) // what cannot be read is told by Usable
		claims = append(claims, readable...)
	}
	told := map[string][]string{}
	for _, o := range Overlaps(claims) {
		told[o.A.Cluster] = append(told[o.A.Cluster], o.A.against(o.B, self))
		told[o.B.Cluster] = append(told[o.B.Cluster], o.B.against(o.A, self))
	}
	messages := make(map[string]string, len(told))
	for cluster, all := range told {
		messages[cluster] = sentence(all)
	}
	return messages
}

func (c Claim) against(other Claim, self string) string {
	return fmt.Sprintf("%s %s overlaps %s %s of %s", c.Use, c.Range, other.Use, other.Range, nameFor(other.Cluster, self))
}

func nameFor(cluster, self string) string {
	if cluster == self {
		return "this cluster"
	}
	return fmt.Sprintf("cluster %q", cluster)
}

func sentence(all []string) string {
	more := ""
	if n := len(all) - toldAtMost; n > 0 {
		all, more = all[:toldAtMost], fmt.Sprintf(", and %d more", n)
	}
	return strings.Join(all, ", ") + more + "; no traffic can be carried to an address that two clusters have, so give one of them another range"
}

// Usable tells what is wrong with a ClusterInfo by itself; empty when nothing is.
func Usable(info v1alpha1.ClusterInfo) string {
	if _, err := ClaimsOf(info); err != nil {
		return err.Error() + "; correct it in that cluster"
	}
	for _, gateway := range info.GatewayInfos {
		if _, problem := address(gateway.GatewayIP); problem != "" {
			return fmt.Sprintf("its gateway address %q %s; correct it in that cluster", gateway.GatewayIP, problem)
		}
	}
	if len(info.GatewayInfos) == 0 {
		return "it names no gateway; give a Node of that cluster the annotation " + v1alpha1.AnnotationGateway
	}
	return ""
}

// Told are the clusters of which ClusterInfoImports say that their addresses are
// claimed twice, with that sentence. Never nil.
func Told(imports []v1alpha1.ClusterInfoImport) map[string]string {
	told := map[string]string{}
	for _, i := range imports {
		for _, c := range i.Status.Conditions {
			if c.Type == v1alpha1.ResourceReady && c.Reason == ReasonOverlap && i.DeletionTimestamp.IsZero() {
				told[i.Spec.ClusterID] = c.Message
			}
		}
	}
	return told
}
