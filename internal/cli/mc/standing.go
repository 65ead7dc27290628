package mc

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// standing is how a membership stands, as its ClusterSet says.
type standing struct {
	// Member: the leader has answered, and the heartbeat goes on.
	Member bool
	// Reason and Sentence say what is in the way when it is not so.
	Reason   string
	Sentence string
}

const reasonNotTakenUp = "NotTakenUp"

// readStanding reads what the member controller has written about the current
// ClusterSet; an older status tells nothing of it.
func readStanding(set *v1alpha2.ClusterSet) standing {
	if set.Status.ObservedGeneration == 0 || set.Status.ObservedGeneration < set.Generation {
		return standing{Reason: reasonNotTakenUp,
			Sentence: fmt.Sprintf("no member controller has taken up the ClusterSet; see that it runs (kubectl -n %s get pods)", set.Namespace)}
	}
	for _, c := range leaderConditions(set) {
		if c.Status != corev1.ConditionTrue {
			return standing{Reason: c.Reason, Sentence: sentence(string(c.Type), c.Status, c.Reason, c.Message)}
		}
	}
	for _, c := range set.Status.Conditions {
		if c.Type == v1alpha1.ClusterSetReady && c.Status == corev1.ConditionTrue {
			return standing{Member: true, Reason: c.Reason, Sentence: c.Message}
		}
	}
	return standing{Sentence: "the ClusterSet is not ready yet"}
}

// leaderConditions returns Ready and IsLeader of the leader, Unknown when the
// member has written nothing about them.
func leaderConditions(set *v1alpha2.ClusterSet) []v1alpha1.ClusterCondition {
	found := []v1alpha1.ClusterCondition{
		{Type: v1alpha1.ClusterReady, Status: corev1.ConditionUnknown},
		{Type: v1alpha1.ClusterIsLeader, Status: corev1.ConditionUnknown},
	}
	for _, cluster := range set.Status.ClusterStatuses {
		if cluster.ClusterID != leaderOf(set).ClusterID {
			continue
		}
		for _, c := range cluster.Conditions {
			for i := range found {
				if found[i].Type == c.Type {
					found[i] = c
				}
			}
		}
	}
	return found
}

func sentence(kind string, status corev1.ConditionStatus, reason, message string) string {
	switch {
	case message != "":
		return message
	case reason != "":
		return fmt.Sprintf("condition %s is %s (%s)", kind, status, reason)
	default:
		return fmt.Sprintf("condition %s is %s", kind, status)
	}
}

// verdict of a reason that waiting does not change.
type verdict int

const (
	mayPass verdict = iota // a network, a controller that starts
	isError                // somebody has to repair something
	isRule                 // a rule forbids this membership
)

func judge(reason string) verdict {
	switch reason {
	case clusterset.ReasonUnauthorized, clusterset.ReasonCredentialMissing:
		return isError
	case clusterset.ReasonIDInUse, clusterset.ReasonInvalid, clusterset.ReasonLoopback, clusterset.ReasonSecondClusterSet:
		return isRule
	default:
		return mayPass
	}
}
