package selection

import (
	"fmt"
	"strings"
)

// sample is a key whose class is known beforehand.
type sample struct {
	Key  string
	Want Class
}

// samples have at least one key for every kind of rule. Another prefix takes
// the place of "/registry/".
var samples = []sample{
	{"compact_rev_key", Local},
	{"/registry/masterleases/192.0.2.10", Local},
	{"/registry/ranges/serviceips", Local},
	{"/registry/services/endpoints/default/kubernetes", Local},
	{"/registry/leases/kube-system/apiserver-x7k2", Local},
	{"/registry/events/shop/web.17a", Local},
	{"/registry/minions/node-1", Local},
	{"/registry/configmaps/shop/kube-root-ca.crt", Local},
	{"/registry/validatingwebhookconfigurations/policy", Local},
	{"/registry/clusterroles/system:node", Local},
	{"/registry/clusterroles/shop-reader", Mirrored},
	{"/registry/namespaces/kube-system", Local},
	{"/registry/namespaces/shop", Mirrored},
	{"/registry/configmaps/cpaas-system/settings", Local},
	{"/registry/configmaps/shop/global-settings", Mirrored},
	{"/registry/secrets/shop/password", Mirrored},
	{"/registry/cluster.x-k8s.io/clusters/cpaas-system/global", Local},
	{"/registry/cluster.x-k8s.io/clusters/cpaas-system/west", Mirrored},
	{"/registry/cluster.x-k8s.io/machines/cpaas-system/global-master-1", Local},
	{"/registry/infrastructure.cluster.x-k8s.io/hcsmachines/cpaas-system/west-1", Mirrored},
	{"/registry/elemental.cattle.io/machineregistrations/cpaas-system/west", Mirrored},
	{"/registry/elemental.cattle.io/seedimages/cpaas-system/west", Local},
	{"/registry/apiextensions.k8s.io/customresourcedefinitions/machines.cluster.x-k8s.io", Mirrored},
}

// SelfTest classifies the samples by the built-in rules and an installation's
// options. The error names the first sample whose class is not the expected
// one, unless a list or an option names the very key.
func (r Rules) SelfTest() ([]Verdict, error) {
	verdicts := make([]Verdict, 0, len(samples))
	for _, sample := range samples {
		key := sample.Key
		if rest, inside := strings.CutPrefix(key, "/registry/"); inside {
			key = r.Root() + rest
		}
		v := r.Classify(key)
		verdicts = append(verdicts, v)
		if v.Class != sample.Want && !isChosen(v.Rule) {
			return verdicts, fmt.Errorf("the rules make %s %s by rule %q, and it must be %s: do not mirror with this program; report it", key, v.Class, v.Rule, sample.Want)
		}
	}
	return verdicts, nil
}

// isChosen tells the rules an installation sets itself.
func isChosen(rule string) bool {
	return rule == RuleIgnoreEqual || rule == RuleSyncEqual || rule == RuleDefinition
}
