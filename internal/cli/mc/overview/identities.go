package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// checkIdentities looks at the credentials and the IDs of the common area.
func (p *page) checkIdentities() {
	if p.lead == nil {
		return
	}
	bound := p.bound()
	ids := map[string]bool{}
	for _, a := range p.announces() {
		ids[a.ClusterID] = true
		if len(bound[a.ClusterID]) == 0 {
			p.problem("UPG-CHK-1", fmt.Sprintf("member %q has no credential of its own", a.ClusterID),
				"no ServiceAccount of the common area is bound to its ID, so a leader that binds identities refuses its heartbeat",
				fmt.Sprintf("lockstep mc create membertoken %s-token --cluster-id %s -n %s --context %s", a.ClusterID, a.ClusterID, p.lead.set.Namespace, p.lead.cluster.Context))
		}
	}
	for _, id := range sortedKeys(bound) {
		ids[id] = true
		if accounts := bound[id]; len(accounts) > 1 {
			p.problem("UPG-CHK-2", fmt.Sprintf("cluster ID %q is bound more than once", id),
				"ServiceAccounts "+strings.Join(accounts, " and ")+" carry it",
				fmt.Sprintf("delete the one that is not in use: lockstep mc delete membertoken NAME -n %s --context %s", p.lead.set.Namespace, p.lead.cluster.Context))
		}
	}
	p.checkPairs(sortedKeys(ids))
}

func (p *page) bound() map[string][]string {
	bound := map[string][]string{}
	for _, account := range p.lead.cluster.Accounts {
		if id := account.Annotations[v1alpha1.AnnotationClusterID]; id != "" && account.Namespace == p.lead.set.Namespace {
			bound[id] = append(bound[id], account.Name)
		}
	}
	for _, accounts := range bound {
		slices.Sort(accounts)
	}
	return bound
}

// checkPairs finds IDs whose exports could get one name.
func (p *page) checkPairs(ids []string) {
	for _, long := range ids {
		for _, short := range ids {
			if strings.HasPrefix(long, short+"-") {
				p.problem("UPG-CHK-7", fmt.Sprintf("cluster IDs %q and %q can be confused", short, long),
					"they differ by a dash and a suffix, so exports of the two can get one name",
					fmt.Sprintf("let %q leave and join it with an ID without the dash", long))
			}
		}
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
