package migration

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Observed is everything the runbook may depend on.
type Observed struct {
	// Set is the name of the ClusterSet.
	Set string
	// Evidence has one member for each of Targets, in their order.
	Evidence preflight.Evidence
	Targets  []Target
	// Tokens are those of ServiceAccounts of the common area, one for each
	// account: the one to be handed out.
	Tokens rule.Read[[]Token]
	// Versions are resource versions of what may be deleted from the common area, by
	// kind and name: "RoleBinding/east-token".
	Versions map[string]string
	// TokenSecrets are all token Secrets of the common area, by account.
	TokenSecrets map[string][]string
	// Leader is what applying the manifests would change there.
	Leader Install
	// Journal is what earlier looks left, by key.
	Journal map[string]Remembered
	// Override are rules whose refusal is put up with, as far as Overridable.
	Override []string
}

// Remembered is one entry of the journal.
type Remembered struct {
	Value string
	// At by the clock of the leader cluster.
	At time.Time
}

// Token is a token Secret of the common area. The token is not kept.
type Token struct {
	Secret, Account string
	// Signed: the control plane has put the token into the Secret.
	Signed bool
	// Credential tells it from other tokens; see clusterset.Credential.
	Credential string
}

// Target is one member as the run names it.
type Target struct {
	// Context is its name in the run; ids of steps and journal keys have it.
	Context   string
	Namespace string // of its controller
	Token     string // name for a credential, if it needs one; "" is its ID and "-token"
	// NoWay is why there is no way to its cluster, as when the kubeconfig has no such
	// context. It does not go away by itself.
	NoWay string
	// Secrets of that Namespace that matter here: the one its ClusterSet names, and
	// any of the name a carried one would have.
	Secrets []Secret
	// SetVersion is the resource version of its ClusterSet, DeploymentVersion that of
	// its controller's Deployment.
	SetVersion, DeploymentVersion string
	// Rolling is what its Deployment waits for until no process of an earlier
	// template runs; empty when none does, or there is no Deployment.
	Rolling rule.Read[string]
	Install Install
}

// Secret is a Secret of a member. Its data is not kept.
type Secret struct {
	Name, Type string
	Credential string
	// Ours: it was made by a command line and may be replaced by one.
	Ours bool
	Seen string // resource version
}

// Install is the difference between a controller and what it is to be.
type Install struct {
	// Wanted: the run says which image is wanted.
	Wanted bool
	// Image that is wanted, Present the one that runs; empty when there is none.
	Image, Present string
	// Differs are objects that applying the manifests would change, as a person
	// reads them; empty when all is as wanted.
	Differs rule.Read[[]string]
	// Selector: the Deployment has another selector than the manifests, so that it
	// has to be deleted first (UPG-CHK-16).
	Selector bool
	// Ending: the Deployment is being deleted.
	Ending bool
	// Replicas that the Deployment has; it may have to be deleted.
	Replicas int
	// Missing is what the roll-out waits for; empty when all replicas run.
	Missing string
	// Deployment is its name; Seen its resource version, empty when there is none.
	Deployment string
	Namespace  string
	Seen       string
}

// Overridable are the rules whose refusal a run may put up with, and what can
// happen then. None of them is about identity.
var Overridable = map[string]string{
	"UPG-CHK-8":  "a member that has been silent for half a day is not waited for; it loses its exports when its day is over",
	"UPG-CHK-17": "an order of versions that nobody has tried",
}

// tolerated tells whether the run puts up with a finding, and may.
func (o Observed) tolerated(f rule.Finding) bool {
	if _, ok := Overridable[f.Rule]; !ok {
		return false
	}
	for _, id := range o.Override {
		if id == f.Rule {
			return true
		}
	}
	return false
}

// gate asks rules of the evidence; unless everywhere, only what they find about one
// cluster counts.
func (o Observed) gate(cluster string, everywhere bool, ids ...string) []rule.Finding {
	var found []rule.Finding
	for _, check := range preflight.Checks() {
		if !contains(ids, check.ID) {
			continue
		}
		for _, f := range check.Find(o.Evidence) {
			if !everywhere && f.Cluster != cluster {
				continue
			}
			if o.tolerated(f) {
				f.Severity = rule.Warn
			}
			found = append(found, f)
		}
	}
	return found
}

func contains(list []string, s string) bool {
	for _, item := range list {
		if item == s {
			return true
		}
	}
	return false
}

// ReplicasOf is the journal key of how many replicas the controller of a lane had
// when its Deployment had to be deleted.
func ReplicasOf(lane string) string { return "replicas/" + lane }

// id is that of a step of this member, or of an entry of the journal about it.
func (t Target) id(phase string) string { return phase + "/" + t.Context }

func (t Target) secret(name string) (Secret, bool) {
	for _, s := range t.Secrets {
		if s.Name == name {
			return s, true
		}
	}
	return Secret{}, false
}

// entry is short for one of the journal.
func entry(key, value string) rollout.Entry { return rollout.Entry{Key: key, Value: value} }
