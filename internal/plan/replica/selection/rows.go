package selection

import "strings"

// row is one line of the table of local keys. Pattern is compared part by part
// with what follows the prefix: "*" at the end of a part matches any rest of it,
// "**" at the end of the pattern one part or more.
type row struct {
	ID      string
	Pattern string
	// Never rows hold even when a list asks for the key.
	Never bool
	Why   string
}

// rows are the keys that belong to the processes and controllers of one side.
// Found by what a fresh control plane stores, and by what broke when it was
// copied into another.
var rows = []row{
	{"endpoint-lease", "masterleases/**", true, "the lease is lost on the way, so the primary's API server would stay in the standby's Service kubernetes for ever"},
	{"endpoint-lease", "peerserverleases/**", true, "the lease is lost on the way, so the standby would call an API server of the primary its peer for ever"},
	{"allocator", "ranges/**", true, "addresses and ports are handed out by each side's own allocator"},
	{"seed-image", "elemental.cattle.io/seedimages/**", true, "an image that seeds machines registers them with the side that made it"},
	{"kubernetes-service", "services/specs/default/kubernetes", true, "its address is one of this side's own"},
	{"kubernetes-service", "services/endpoints/default/kubernetes", true, "these are the addresses of this side's API servers"},
	{"kubernetes-service", "endpointslices/default/kubernetes", true, "these are the addresses of this side's API servers"},

	{"lease", "leases/**", false, "a Lease says which local process lives or leads"},
	{"event", "events/**", false, "events tell what happened on one side, and expire with leases that are lost on the way"},
	{"allocator", "ipaddresses/**", false, "addresses are handed out by each side's own allocator"},
	{"allocator", "servicecidrs/**", false, "addresses are handed out by each side's own allocator"},
	{"node", "minions/**", false, "a Node without its kubelet would be taken for dead"},
	{"node", "csinodes/**", false, "it belongs to a Node of this side"},
	{"node", "volumeattachments/**", false, "it belongs to a Node of this side"},
	{"node", "pods/**", false, "a Pod runs on a Node of this side; its controller makes its own"},
	{"node", "certificatesigningrequests/**", false, "it asks this side's signers"},
	{"cluster-identity", "configmaps/*/kube-root-ca.crt", false, "it holds the authority of this side's API server, and this side's controller writes it back"},
	{"cluster-identity", "configmaps/kube-system/extension-apiserver-authentication", false, "it holds the authorities of this side's API server"},
	{"aggregated-api", "apiregistration.k8s.io/apiservices/**", false, "it points at a component of this side; without it the API group answers errors"},
	{"webhook", "validatingwebhookconfigurations/**", false, "a webhook whose Service is not here may block all writes"},
	{"webhook", "mutatingwebhookconfigurations/**", false, "a webhook whose Service is not here may block all writes"},
	{"bootstrap", "clusterroles/system:*", false, "each API server reconciles its own"},
	{"bootstrap", "clusterroles/cluster-admin", false, "each API server reconciles its own"},
	{"bootstrap", "clusterroles/admin", false, "each API server reconciles its own"},
	{"bootstrap", "clusterroles/edit", false, "each API server reconciles its own"},
	{"bootstrap", "clusterroles/view", false, "each API server reconciles its own"},
	{"bootstrap", "clusterrolebindings/system:*", false, "each API server reconciles its own"},
	{"bootstrap", "clusterrolebindings/cluster-admin", false, "each API server reconciles its own"},
	{"bootstrap", "flowschemas/**", false, "each API server reconciles its own"},
	{"bootstrap", "prioritylevelconfigurations/**", false, "each API server reconciles its own"},
	{"bootstrap", "priorityclasses/system-*", false, "each API server reconciles its own"},
}

// byFirst finds the rows that can match at all: a key is classified for every
// event, and only a few rows begin with its first part.
var byFirst = func() map[string][]row {
	index := map[string][]row{}
	for _, r := range rows {
		first, _, _ := strings.Cut(r.Pattern, "/")
		index[first] = append(index[first], r)
	}
	return index
}()

// findRow is the first row with the wanted strength that matches.
func findRow(rest string, never bool) (row, bool) {
	first, _, _ := strings.Cut(rest, "/")
	for _, r := range byFirst[first] {
		if r.Never == never && matches(r.Pattern, rest) {
			return r, true
		}
	}
	return row{}, false
}

func matches(pattern, rest string) bool {
	for {
		if pattern == "**" {
			return rest != ""
		}
		p, morePattern, more := strings.Cut(pattern, "/")
		k, moreRest, left := strings.Cut(rest, "/")
		if start, wild := strings.CutSuffix(p, "*"); !(p == k || wild && strings.HasPrefix(k, start)) {
			return false
		}
		if more != left {
			return false
		}
		if !more {
			return true
		}
		pattern, rest = morePattern, moreRest
	}
}

// localNamespaces are the platform's own; neither they nor what is in them is
// mirrored, unless a rule above says so.
var localNamespaces = map[string]bool{
	"cpaas-system": true, "cert-manager": true, "default": true, "global-credentials": true,
	"cpaas-system-global-credentials": true, "kube-ovn": true, "kube-public": true, "kube-system": true,
	"nsx-system": true, "cpaas-solution": true, "kube-node-lease": true, "kubevirt": true,
	"nativestor-system": true, "operators": true,
}

// isMachinery tells the groups of Cluster API, its providers and the
// inventories of bare metal.
func isMachinery(group string) bool {
	return group == "cluster.x-k8s.io" || strings.HasSuffix(group, ".cluster.x-k8s.io") || group == "elemental.cattle.io"
}

// namesGlobal tells the groups in which the management cluster is told by name:
// its Cluster is called "global", all else of it "global-…". Elsewhere such a
// name is a user's own choice.
func namesGlobal(group string) bool { return isMachinery(group) || group == "platform.tkestack.io" }
