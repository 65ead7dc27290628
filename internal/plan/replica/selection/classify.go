package selection

import (
	"fmt"
	"strings"
)

// Class says whether a key travels.
type Class string

// The classes.
const (
	// Local keys belong to the side they are on: never read into a copy, never
	// written, never deleted by the mirror.
	Local Class = "local"
	// Mirrored keys are the same on both sides, byte for byte.
	Mirrored Class = "mirrored"
)

// Rules that are no row of the table.
const (
	RuleOutside       = "outside"
	RuleIgnoreEqual   = "ignore-equal"
	RuleSyncEqual     = "sync-equal"
	RuleGlobal        = "global"
	RuleMachinery     = "capi"
	RuleClusterObject = "cluster-object"
	RuleDefinition    = "crd-versions"
	RuleNamespace     = "namespace"
	RuleOtherwise     = "otherwise"
)

// Facts are what the labels of an object say about whose it is.
type Facts struct {
	// Read is false when nobody has looked, or nobody could (an encrypted value).
	Read bool
	// Cluster is the label cluster.x-k8s.io/cluster-name; empty without one.
	Cluster string
	// GlobalScope: the annotation baremetal.cluster.io/system-agent-auth-scope
	// is "global".
	GlobalScope bool
}

// Verdict is the class of one key and how it came about.
type Verdict struct {
	Key   string `json:"key"`
	Class Class  `json:"class"`
	Rule  string `json:"rule"`
	Why   string `json:"why"`
	// DependsOnObject: the key alone says this, and the labels of the object,
	// which were not read, could say otherwise.
	DependsOnObject bool `json:"dependsOnObject"`
}

// Rules classify keys. The zero value has the built-in rules and no lists.
type Rules struct {
	// Prefix below which Kubernetes keeps its objects; empty means "/registry".
	Prefix string
	// IgnoreEqual and SyncEqual are exact keys. A key in both stays local.
	IgnoreEqual, SyncEqual map[string]bool
	// LocalDefinitions keeps CustomResourceDefinitions local: wanted while the
	// two sides have different versions, because an older definition over a
	// newer one makes stored objects unreadable.
	LocalDefinitions bool
}

// Root is the prefix with a slash at its end: the range that is mirrored.
func (r Rules) Root() string {
	if r.Prefix == "" {
		return "/registry/"
	}
	return strings.TrimSuffix(r.Prefix, "/") + "/"
}

// Classify decides about a key by its text alone.
func (r Rules) Classify(key string) Verdict { return r.ClassifyObject(key, Facts{}) }

// ClassifyObject decides about a key whose object has been looked at.
func (r Rules) ClassifyObject(key string, facts Facts) Verdict {
	v := r.decide(key, facts)
	v.Key = key
	v.DependsOnObject = !facts.Read && dependsOnObject(v)
	return v
}

// dependsOnObject: the lists and the table are final, labels are asked only
// below them. A row comes after the labels too, but its objects carry none.
func dependsOnObject(v Verdict) bool {
	switch v.Rule {
	case RuleMachinery, RuleNamespace, RuleOtherwise, RuleDefinition:
		return true
	}
	return false
}

func (r Rules) decide(key string, facts Facts) Verdict {
	rest, inside := strings.CutPrefix(key, r.Root())
	if !inside || rest == "" {
		return local(RuleOutside, fmt.Sprintf("it is not below %s; what else etcd holds, such as compact_rev_key, steers this side's own processes", r.Root()))
	}
	if row, ok := findRow(rest, true); ok {
		return local(row.ID, row.Why)
	}
	if r.IgnoreEqual[key] {
		return local(RuleIgnoreEqual, "an administrator listed it as local")
	}
	if r.SyncEqual[key] {
		return mirrored(RuleSyncEqual, "an administrator listed it as mirrored")
	}
	return r.decideObject(parseKey(rest), rest, facts)
}

func (r Rules) decideObject(key Key, rest string, facts Facts) Verdict {
	if why := ofGlobal(key, facts); why != "" {
		return local(RuleGlobal, why)
	}
	if isMachinery(key.Group) {
		return mirrored(RuleMachinery, "machines of workload clusters are managed by whichever side is active")
	}
	if row, ok := findRow(rest, false); ok {
		return local(row.ID, row.Why)
	}
	if facts.Cluster != "" && (key.Resource == "secrets" || key.Resource == "configmaps") {
		return mirrored(RuleClusterObject, fmt.Sprintf("its label says that it belongs to workload cluster %q", facts.Cluster))
	}
	if r.LocalDefinitions && key.Resource == "customresourcedefinitions" {
		return local(RuleDefinition, "the sides have different versions, and an older definition over a newer one makes objects unreadable")
	}
	switch {
	case localNamespaces[key.Namespace]:
		return local(RuleNamespace, fmt.Sprintf("namespace %q is the platform's own", key.Namespace))
	case key.Group == "" && key.Resource == "namespaces" && localNamespaces[key.Name]:
		return local(RuleNamespace, fmt.Sprintf("namespace %q is the platform's own, and its UID is part of this side's identity", key.Name))
	}
	return mirrored(RuleOtherwise, "no rule keeps it local")
}

// ofGlobal is how an object shows that it belongs to the management cluster
// itself; empty when it does not. Failover deletes machines of the standby whose
// objects lack these marks.
func ofGlobal(key Key, facts Facts) string {
	switch {
	case namesGlobal(key.Group) && (key.Name == "global" || strings.HasPrefix(key.Name, "global-")):
		return fmt.Sprintf("the name %q belongs to the management cluster itself", key.Name)
	case facts.Cluster == "global":
		return `its label says that it belongs to cluster "global"`
	case facts.GlobalScope:
		return `its annotation gives it the scope "global"`
	}
	return ""
}

func local(rule, why string) Verdict    { return Verdict{Class: Local, Rule: rule, Why: why} }
func mirrored(rule, why string) Verdict { return Verdict{Class: Mirrored, Rule: rule, Why: why} }
