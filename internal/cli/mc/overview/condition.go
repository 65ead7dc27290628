package overview

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
)

// State is a condition as the page shows it.
type State struct {
	// Status is True, False or Unknown; "" when nobody has said anything.
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func (s State) isTrue() bool { return s.Status == string(corev1.ConditionTrue) }

// String is the status, with the reason when it is not True.
func (s State) String() string {
	if s.isTrue() || s.Reason == "" {
		return s.Status
	}
	return fmt.Sprintf("%s (%s)", s.Status, s.Reason)
}

// why is the message, else what else is known.
func (s State) why() string {
	switch {
	case s.Message != "":
		return s.Message
	case s.Reason != "":
		return "the reason given is " + s.Reason
	default:
		return "no reason is given"
	}
}

// overall is the Ready condition of a ClusterSet.
func overall(set *v1alpha2.ClusterSet) State {
	for _, c := range set.Status.Conditions {
		if c.Type == v1alpha1.ClusterSetReady {
			return State{string(c.Status), c.Reason, c.Message}
		}
	}
	return State{}
}

// readiness is what a ClusterSet says of one cluster.
func readiness(set *v1alpha2.ClusterSet, clusterID string) State {
	for _, cluster := range set.Status.ClusterStatuses {
		if cluster.ClusterID != clusterID {
			continue
		}
		for _, c := range cluster.Conditions {
			if c.Type == v1alpha1.ClusterReady {
				return State{string(c.Status), c.Reason, c.Message}
			}
		}
	}
	return State{}
}

// takenUp tells whether a controller has looked at the ClusterSet as it is now.
func takenUp(set *v1alpha2.ClusterSet) bool {
	return set.Status.ObservedGeneration > 0 && set.Status.ObservedGeneration >= set.Generation
}

func stateOf(conditions []metav1.Condition, kind string) State {
	for _, c := range conditions {
		if c.Type == kind {
			return State{string(c.Status), c.Reason, c.Message}
		}
	}
	return State{}
}
