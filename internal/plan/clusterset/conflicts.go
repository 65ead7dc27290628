package clusterset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

const (
	// ReasonCIDROverlap is the reason of a NetworkConflict.
	ReasonCIDROverlap = "CIDROverlap"
	// ReasonCIDROverlapResolved is that of the Event when it is over.
	ReasonCIDROverlapResolved = "CIDROverlapResolved"
)

// TellConflicts puts on a status which clusters claim addresses that others claim
// as well: a condition NetworkConflict behind those of that cluster, with the
// sentence given for it. It takes away what earlier ones said. Where nothing is in
// conflict the status is as upstream writes it.
func TellConflicts(status *v1alpha1.ClusterSetStatus, before v1alpha1.ClusterSetStatus, conflicts map[string]string, now time.Time) {
	var clusters []v1alpha1.ClusterStatus
	told := map[string]bool{}
	for _, cluster := range status.ClusterStatuses {
		kept := v1alpha1.ClusterStatus{ClusterID: cluster.ClusterID}
		for _, c := range cluster.Conditions {
			if c.Type != v1alpha1.ClusterNetworkConflict {
				kept.Conditions = append(kept.Conditions, c)
			}
		}
		if message := conflicts[cluster.ClusterID]; message != "" && !told[cluster.ClusterID] {
			kept.Conditions = append(kept.Conditions, conflictCondition(message))
			told[cluster.ClusterID] = true
		}
		if len(kept.Conditions) > 0 || len(cluster.Conditions) == 0 {
			clusters = append(clusters, kept)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(conflicts)) {
		if !told[id] {
			clusters = append(clusters, v1alpha1.ClusterStatus{ClusterID: id, Conditions: []v1alpha1.ClusterCondition{conflictCondition(conflicts[id])}})
		}
	}
	status.ClusterStatuses = clusters
	keepTimes(status, before, now)
}

func conflictCondition(message string) v1alpha1.ClusterCondition {
	return v1alpha1.ClusterCondition{
		Type: v1alpha1.ClusterNetworkConflict, Status: corev1.ConditionTrue, Reason: ReasonCIDROverlap, Message: message,
	}
}

// News is one thing to tell of as an Event.
type News struct{ Type, Reason, Message string }

// ConflictNews is what two statuses of one ClusterSet differ in as to conflicts:
// one thing for all clusters that are new to them or have another one, since
// Events of one reason about one object become one, and one for all that are over.
func ConflictNews(before, after v1alpha1.ClusterSetStatus) []News {
	was, is := conflictsOf(before), conflictsOf(after)
	var begun, over []string
	for _, id := range slices.Sorted(maps.Keys(is)) {
		if was[id] != is[id] {
			begun = append(begun, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(was)) {
		if is[id] == "" {
			over = append(over, id)
		}
	}
	var news []News
	if len(begun) > 0 {
		news = append(news, News{corev1.EventTypeWarning, ReasonCIDROverlap, "addresses are claimed twice, of " + names(begun) + ": " + is[begun[0]]})
	}
	if len(over) > 0 {
		news = append(news, News{corev1.EventTypeNormal, ReasonCIDROverlapResolved, "no other cluster claims the addresses of these any more: " + names(over)})
	}
	return news
}

// named is how many clusters an Event names; it has room for 1024 bytes.
const named = 5

func names(clusters []string) string {
	if more := len(clusters) - named; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(clusters[:named], ", "), more)
	}
	return strings.Join(clusters, ", ")
}

func conflictsOf(status v1alpha1.ClusterSetStatus) map[string]string {
	found := map[string]string{}
	for _, cluster := range status.ClusterStatuses {
		for _, c := range cluster.Conditions {
			if c.Type == v1alpha1.ClusterNetworkConflict && c.Status == corev1.ConditionTrue {
				found[cluster.ClusterID] = c.Message
			}
		}
	}
	return found
}
