package services

import (
	"slices"
	"time"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// Arrival is an export of another cluster that a plan makes usable here.
type Arrival struct {
	Cluster string
	// Exported is when its ServiceExport was made, in whole seconds, by the
	// clock of that cluster.
	Exported time.Time
}

// Arrivals are the exports whose first endpoints a plan brings, once all of it
// is applied. A cluster that the ServiceImport names already has arrived before:
// what is made anew then has only been away. Upstream exporters do not say since
// when they export, so nothing is known of theirs.
func Arrivals(o ImportObserved, plan ImportPlan) []Arrival {
	if plan.NeedsIP || len(plan.Refusals) > 0 || plan.ServiceImportStatus == nil {
		return nil
	}
	var arrivals []Arrival
	for _, change := range plan.Slices {
		if change.Current != nil || change.Desired == nil {
			continue
		}
		cluster := change.Desired.Labels[mcsv1beta1.LabelSourceCluster]
		known := slices.ContainsFunc(arrivals, func(a Arrival) bool { return a.Cluster == cluster })
		if known || cluster == o.Cluster || o.hasFrom(cluster) {
			continue
		}
		if exported, ok := o.exportedAt(cluster); ok {
			arrivals = append(arrivals, Arrival{cluster, exported})
		}
	}
	return arrivals
}

// hasFrom tells whether something of a cluster is here already.
func (o ImportObserved) hasFrom(cluster string) bool {
	for i := range o.Slices {
		if sourceOf(&o.Slices[i]) == cluster {
			return true
		}
	}
	return o.ServiceImport != nil && slices.ContainsFunc(o.ServiceImport.Status.Clusters, func(c mcsv1beta1.ClusterStatus) bool { return c.Cluster == cluster })
}

// exportedAt is what the slices of a cluster say. One that was left by an earlier
// export of the Service still says when that was made, so the latest counts.
func (o ImportObserved) exportedAt(cluster string) (at time.Time, ok bool) {
	for i := range o.Remote {
		if sourceOf(&o.Remote[i]) != cluster {
			continue
		}
		if t, err := time.Parse(time.RFC3339, o.Remote[i].Annotations[v1alpha1.AnnotationExported]); err == nil && (!ok || t.After(at)) {
			at, ok = t, true
		}
	}
	return at, ok
}
