package preflight

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

const (
	// endangered announces have half of their life behind them: upstream deletes
	// one after 24 h, and looks every 12 h (LDR-GC-1).
	endangered = 12 * time.Hour
	expiry     = 24 * time.Hour
)

// beat is how the last heartbeat of an announce reads at the leader.
type beat struct {
	state beatState
	age   time.Duration
}

type beatState int

const (
	fresh   beatState = iota
	newborn           // created so lately that the second beat is not due
	silent            // disconnected
	dying             // will lose all exports soon
	absurd            // missing, unreadable, or too far from now to be true
)

// beatOf reads touch-ts, which the member writes by its own clock.
func beatOf(a v1alpha1.MemberClusterAnnounce, now time.Time) beat {
	touched, err := time.Parse(time.RFC3339, a.Annotations[v1alpha1.AnnotationTouch])
	age := now.Sub(touched)
	switch {
	case err != nil && a.Annotations[v1alpha1.AnnotationTouch] == "" && now.Sub(a.CreationTimestamp.Time) <= clusterset.BeatTimeout:
		return beat{state: newborn}
	case err != nil, age > expiry, age < -expiry:
		return beat{state: absurd}
	case age > endangered:
		return beat{dying, age}
	case age > clusterset.BeatTimeout:
		return beat{silent, age}
	}
	return beat{fresh, age}
}

var heartbeats = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-8", Severity: rule.Refuse, Title: "Heartbeats are fresh",
		Why:    "A member whose heartbeat stops loses all its exports a day later, and a strict leader is a new reason for it to stop. One with a wrong clock is deleted while it is alive, or kept for ever.",
		Remedy: "look at the member's controller, its credential and its clock",
		Source: "upgrade of Antrea Multi-cluster to v2.7",
	},
	look: func(e Evidence, r *report) {
		announces, okA := need(r, e.Leader.source(), "the announces", e.Leader.Announces)
		now, okB := need(r, e.Leader.source(), "the time", e.Leader.Now)
		if !okA || !okB {
			return
		}
		for _, a := range announces {
			f := rule.Finding{
				Cluster: a.ClusterID, Objects: []rule.Object{announceObject(a)},
				Evidence: []string{fmt.Sprintf("touch-ts is %q", a.Annotations[v1alpha1.AnnotationTouch])},
			}
			switch beatOf(a, now).state {
			case newborn:
				f.Severity, f.Message, f.Remedy = rule.Wait, fmt.Sprintf("member %q has just announced itself", a.ClusterID), "look again after its next heartbeat"
				r.add(f)
			case silent:
				f.Message = fmt.Sprintf("member %q is disconnected: no heartbeat for more than 30 s", a.ClusterID)
				r.warn(f)
			case dying:
				f.Message = fmt.Sprintf("member %q will lose all its exports soon: no heartbeat for more than 12 h", a.ClusterID)
				r.block(f)
			case absurd:
				f.Message = fmt.Sprintf("the heartbeat of member %q is missing, unreadable or more than 24 h away from the leader's clock", a.ClusterID)
				r.fix(f)
			}
		}
	},
}

var silentMembers = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-27", Severity: rule.Refuse, Title: "Both sides agree that a member is connected",
		Why:    "After a change of credential or leader an upstream member can stop beating and still call itself ready, until the leader deletes its exports a day later.",
		Remedy: "restart the member controller",
		Source: "upgrade of Antrea Multi-cluster to v2.7, WK-4",
	},
	look: func(e Evidence, r *report) {
		announces, okA := need(r, e.Leader.source(), "the announces", e.Leader.Announces)
		now, okB := need(r, e.Leader.source(), "the time", e.Leader.Now)
		if !okA || !okB {
			return
		}
		for _, m := range e.Members {
			sets, ok := need(r, m.source(), "the ClusterSet", m.ClusterSets)
			if !ok {
				continue
			}
			for _, set := range sets {
				if !saysReady(set) || beats(set.Spec.ClusterID, announces, now) {
					continue
				}
				r.block(rule.Finding{
					Cluster: m.ID, Objects: []rule.Object{{Kind: "ClusterSet", Namespace: set.Namespace, Name: set.Name}},
					Message: fmt.Sprintf("%s says that it is ready, but the leader has seen no heartbeat for more than 30 s", m.source()),
				})
			}
		}
	},
}

func beats(id string, announces []v1alpha1.MemberClusterAnnounce, now time.Time) bool {
	return slices.ContainsFunc(announces, func(a v1alpha1.MemberClusterAnnounce) bool {
		state := beatOf(a, now).state
		return a.ClusterID == id && (state == fresh || state == newborn)
	})
}

func saysReady(set v1alpha2.ClusterSet) bool {
	return slices.ContainsFunc(set.Status.Conditions, func(c v1alpha1.ClusterSetCondition) bool {
		return c.Type == v1alpha1.ClusterSetReady && c.Status == corev1.ConditionTrue
	})
}
