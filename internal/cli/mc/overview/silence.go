package overview

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	names "github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// silence fills in what the leader thinks of a member's signs of life.
func (p *page) silence(row *Member, announce *v1alpha1.MemberClusterAnnounce) {
	row.SilentSince = timeOf(announce.Annotations[v1alpha1.AnnotationSilentSince])
	row.CleanUpAt = timeOf(announce.Annotations[v1alpha1.AnnotationCleanUpAt])
	for _, cluster := range p.lead.set.Status.ClusterStatuses {
		for _, c := range cluster.Conditions {
			if cluster.ClusterID == row.ClusterID && c.Type == v1alpha1.ClusterCleanUpPending {
				row.CleanUpHeld = c.Reason == clusterset.ReasonCleanUpHeld
			}
		}
	}
	for i := range p.lead.cluster.Leases {
		lease := &p.lead.cluster.Leases[i]
		if lease.Namespace == p.area && lease.Name == names.LeaseName(row.ClusterID) && lease.Spec.RenewTime != nil {
			age := int64(p.now.Sub(lease.Spec.RenewTime.Time) / time.Second)
			row.Lease, row.LeaseAge = &lease.Spec.RenewTime.Time, &age
		}
	}
	for i := range p.lead.cluster.Losses {
		told := &p.lead.cluster.Losses[i]
		if loss := clusterset.ReadLoss(told); told.Namespace == p.area && slices.Contains(loss.Clusters, row.ClusterID) {
			row.Lost = string(loss.Policy)
		}
	}
}

func timeOf(text string) *time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	return &t
}

// checkSilence tells what the leader's not hearing a member brings about, and
// whether that is all there is to say of its silence.
func (p *page) checkSilence(row Member) (told bool) {
	since := ""
	if row.SilentSince != nil {
		since = row.SilentSince.UTC().Format(time.RFC3339)
	}
	if row.Lost == string(v1alpha1.LossNotReady) || row.Lost == string(v1alpha1.LossWithdraw) {
		p.problem("WK-42", fmt.Sprintf("no member uses the endpoints of member %q", row.ClusterID),
			fmt.Sprintf("the leader does not hear it since %s, and the ClusterSet says %s", since, row.Lost),
			"bring it back; or have them used all the same: "+p.lead.kubectl("annotate clusterset %s --overwrite %s=%s", p.name, v1alpha1.AnnotationOnMemberLoss, v1alpha1.LossKeep))
	}
	switch {
	case row.CleanUpHeld:
		p.problem("UPG-CHK-8", fmt.Sprintf("member %q is silent", row.ClusterID),
			fmt.Sprintf("the leader does not hear it since %s; what it exports is kept, because its announce says so", since), p.revive(row))
		return true
	case row.CleanUpAt == nil:
		return false
	}
	p.problem("UPG-CHK-8", fmt.Sprintf("member %q is about to lose its exports", row.ClusterID),
		fmt.Sprintf("it is silent since %s, and all it exports is deleted at %s", since, row.CleanUpAt.UTC().Format(time.RFC3339)),
		"bring it back; or keep what it exports: "+p.lead.kubectl("annotate memberclusterannounce %s %s=true", names.AnnounceName(row.ClusterID), v1alpha1.AnnotationHoldCleanUp))
	return true
}
