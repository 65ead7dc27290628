package tally

import (
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/bench/internal/journal"
)

// Class says to whom a write counts.
type Class int

const (
	// Others: components of Kubernetes and the node.
	Others Class = iota
	// Ours: a controller's, of a kind that stays still while nothing happens.
	Ours
	// Announces, Memories and Leases are written all the time: heartbeats.
	Announces
	Memories
	Leases
)

// Resources as the layout of etcd names them.
const (
	announces = "memberclusterannounces.multicluster.crd.antrea.io"
	sets      = "clustersets.multicluster.crd.antrea.io"
	facts     = "resourceexports.multicluster.crd.antrea.io"
	merged    = "resourceimports.multicluster.crd.antrea.io"
	exports   = "serviceexports.multicluster.x-k8s.io"
	imports   = "serviceimports.multicluster.x-k8s.io"
)

// Classify judges by the kind where no one else writes it, else by whether a
// controller of Lockstep ever wrote to the object: rather a write too many is
// counted than one too few.
func Classify(w journal.Write) Class {
	switch {
	case w.Resource == "leases" && strings.HasPrefix(w.Name, "lockstep-"):
		return Leases
	case w.Resource == announces:
		return Announces
	case w.Resource == sets && slices.Equal(w.Changed, []string{"metadata.annotations." + v1alpha1.AnnotationLeaderSeen}):
		return Memories
	case Custom(w.Resource), slices.ContainsFunc(w.Managers, controller):
		return Ours
	default:
		return Others
	}
}

// Custom tells the kinds of the multi-cluster API groups.
func Custom(resource string) bool {
	return strings.HasSuffix(resource, ".multicluster.crd.antrea.io") || strings.HasSuffix(resource, ".multicluster.x-k8s.io")
}

// controller tells the field managers of our controllers, which the API server
// takes from their user agents.
func controller(manager string) bool {
	return manager == "lockstep-leader" || manager == "lockstep-member"
}

// Role is who made a write.
type Role string

const (
	// Nobody of ours: the user's own request, or Kubernetes.
	Nobody   Role = ""
	Leader   Role = "leader"
	Exporter Role = "exporter"
	Importer Role = "importer"
)

// RoleOf says which loop made a write that Classify calls ours. The loops share
// their field managers, but no two of them write the same part of a kind: see
// the picture in package arrival.
func RoleOf(w journal.Write, inLeader bool) Role {
	switch {
	case Classify(w) != Ours:
		return Nobody
	case w.Resource == exports: // its owner writes all but the status
		if slices.Contains(w.Changed, "status") {
			return Exporter
		}
		return Nobody
	case inLeader && w.Resource == merged:
		return Leader
	case inLeader && w.Resource == facts:
		if slices.Contains(w.Changed, "status") || slices.Contains(w.Changed, "metadata.finalizers") {
			return Leader
		}
		return Exporter
	case inLeader && w.Resource == "endpointslices":
		return Exporter
	case inLeader:
		return Leader
	case w.Resource == "events": // an importer writes some only where it is refused
		return Exporter
	default:
		return Importer
	}
}
