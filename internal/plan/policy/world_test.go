package policy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/policy"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

const area = "area"

// fataler is what a test and a property check have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a ClusterSet in memory: what API servers would hold, changed by an
// administrator and by the plans alone. Every change is a line of out.
type world struct {
	t               fataler
	strings.Builder // the story so far
	second          int64
	members         map[string]*memberWorld
	exports         map[string]*v1alpha1.ResourceExport
	imports         map[string]*v1alpha1.ResourceImport
}

type memberWorld struct {
	id       string
	upstream bool // it says nothing of imports
	held     bool
	missing  []string // kinds
	tiers    map[string]bool
	policies map[string]*unstructured.Unstructured
}

func newWorld(t fataler) *world {
	return &world{
		t: t, members: map[string]*memberWorld{},
		exports: map[string]*v1alpha1.ResourceExport{}, imports: map[string]*v1alpha1.ResourceImport{},
	}
}

func (w *world) say(format string, args ...any) { fmt.Fprintf(w, "    "+format+"\n", args...) }

func (w *world) now() metav1.Time {
	w.second++
	return metav1.Time{Time: time.Unix(w.second, 0)}
}

// Do is one line of a story: who, what happens, and words to it.
func (w *world) Do(words []string) {
	who, rest := words[0], words[2:]
	m := w.members[who]
	switch words[1] {
	case "exports":
		w.export(rest[0], rest[1:])
	case "unexports":
		if export := w.exports[rest[0]]; export != nil {
			now := w.now()
			export.DeletionTimestamp = &now
		}
	case "aims":
		w.imports[rest[0]].Spec.ClusterIDs = rest[1:]
	case "imports": // by hand, of another kind, at the name
		w.imports[rest[0]] = &v1alpha1.ResourceImport{ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: rest[0]}, Spec: v1alpha1.ResourceImportSpec{Kind: "Raw", Name: "x"}}
	case "forgets":
		clear(w.exports)
		clear(w.imports)
	case "joins":
		w.members[who] = &memberWorld{
			id: who, upstream: slices.Contains(rest, "upstream"), policies: map[string]*unstructured.Unstructured{},
			tiers: map[string]bool{"application": true, "securityops": true},
		}
	case "leaves":
		delete(w.members, who)
	case "lacks":
		m.missing, m.policies, m.tiers = rest, map[string]*unstructured.Unstructured{}, map[string]bool{}
	case "installs":
		m.missing = nil
		m.tiers["application"], m.tiers["securityops"] = true, true
	case "tier":
		m.tiers[rest[0]] = true
	case "no-tier":
		delete(m.tiers, rest[0])
	case "user":
		m.user(rest)
	case "holds":
		m.held = true
	case "trusts":
		m.held = false
	case "restarts":
	default:
		w.t.Fatalf("nothing is known of %q", words)
	}
}

// export is written by an administrator: NAME policy=P, and what it says.
func (w *world) export(name string, words []string) {
	export := w.exports[name]
	if export == nil {
		export = &v1alpha1.ResourceExport{ObjectMeta: metav1.ObjectMeta{
			Namespace: area, Name: name, CreationTimestamp: w.now(), Finalizers: []string{v1alpha1.FinalizerExport, "other/finalizer"},
		}}
		w.exports[name] = export
	}
	export.Spec = v1alpha1.ResourceExportSpec{Kind: v1alpha1.KindAntreaClusterNetworkPolicy, ClusterNetworkPolicy: &v1alpha1.ClusterNetworkPolicy{
		Priority: v1alpha1.Opaque{Raw: []byte("5")},
		Ingress:  []v1alpha1.Opaque{{Raw: []byte(`{"action":"Drop","from":[{"namespaceSelector":{}}]}`)}},
	}}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "policy":
			export.Spec.Name = value
		case "namespace":
			export.Spec.Namespace = value
		case "tier":
			export.Spec.ClusterNetworkPolicy.Tier = value
		case "priority":
			export.Spec.ClusterNetworkPolicy.Priority = v1alpha1.Opaque{Raw: []byte(value)}
		case "nothing":
			export.Spec.ClusterNetworkPolicy = nil
		default:
			w.t.Fatalf("unknown word %q", word)
		}
	}
}

// user does something to a policy in a member: NAME makes|deletes|changes|adopts.
func (m *memberWorld) user(words []string) {
	if m.missing != nil {
		return // there is no such kind
	}
	name, seen := words[0], m.policies[words[0]]
	switch words[1] {
	case "makes":
		p := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"priority": int64(1)}}}
		p.SetGroupVersionKind(policy.Kind)
		p.SetName(name)
		if len(words) > 2 { // as upstream's importer would
			p.SetAnnotations(map[string]string{v1alpha1.AnnotationImportedPolicy: "true"})
		}
		m.policies[name] = p
	case "deletes":
		delete(m.policies, name)
	case "changes":
		if seen != nil {
			seen.Object["spec"].(map[string]any)["egress"] = []any{map[string]any{"action": "Drop"}}
		}
	case "labels":
		if seen != nil {
			seen.SetLabels(map[string]string{v1alpha1.LabelClusterSet: "set", "team": "web"})
		}
	}
}

// complete does what Antrea does to a policy that is stored.
func complete(p *unstructured.Unstructured) {
	spec := p.Object["spec"].(map[string]any)
	if spec["tier"] == nil {
		spec["tier"] = policy.DefaultTier
	}
	rules, _ := spec["ingress"].([]any)
	for _, rule := range rules {
		rule.(map[string]any)["name"] = "ingress-drop-1"
		rule.(map[string]any)["enableLogging"] = false
	}
}

// Settle applies all plans until none wants anything any more.
func (w *world) Settle() {
	for round := 0; ; round++ {
		before := w.Len()
		w.merge()
		for _, id := range slices.Sorted(maps.Keys(w.members)) {
			w.importAll(w.members[id])
		}
		if w.Len() == before {
			if round == 0 {
				w.say("nothing")
			}
			return
		}
		if round > 20 {
			w.t.Fatalf("it does not end:\n%s", w.String())
		}
	}
}

func (w *world) merge() {
	names := map[types.NamespacedName]bool{}
	for _, e := range w.exports {
		names[types.NamespacedName{Namespace: e.Spec.Namespace, Name: e.Spec.Name}] = true
	}
	for _, i := range w.imports {
		if name := (types.NamespacedName{Namespace: i.Spec.Namespace, Name: i.Spec.Name}); i.Name == identity.PolicyImportName(name) {
			names[name] = true
		}
	}
	members := map[string]bool{}
	for id, m := range w.members {
		members[id] = !m.upstream
	}
	sorted := slices.SortedFunc(maps.Keys(names), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range sorted {
		seen := policy.MergeObserved{Area: area, Policy: name, Members: members, Import: w.imports[identity.PolicyImportName(name)], Now: w.now()}
		for _, e := range w.exports {
			if e.Spec.Namespace == name.Namespace && e.Spec.Name == name.Name {
				seen.Exports = append(seen.Exports, *e)
			}
		}
		w.apply(policy.Merge(seen))
	}
}

func (w *world) apply(plan policy.MergePlan) {
	switch c := plan.Import; {
	case c.Deletes():
		w.say("leader deletes import %s", c.Current.Name)
		delete(w.imports, c.Current.Name)
	case c.Desired != nil:
		spec, _ := json.Marshal(c.Desired.Spec.ClusterNetworkPolicy)
		w.say("leader writes import %s: %s", c.Desired.Name, spec)
		if c.Current == nil {
			c.Desired.CreationTimestamp = w.now()
		}
		w.imports[c.Desired.Name] = c.Desired
	}
	if c := plan.Report; c.Desired != nil {
		w.say("leader forgets what former members said of %s", c.Desired.Name)
		w.imports[c.Desired.Name] = c.Desired
	}
	for _, c := range plan.Statuses {
		var said []string
		for _, x := range c.Desired.Status.Conditions {
			said = append(said, strings.TrimSpace(fmt.Sprintf("%s=%s %s %s", x.Type, x.Status, x.Reason, x.Message)))
		}
		w.say("leader says of %s: %s", c.Desired.Name, strings.Join(said, "; "))
		w.exports[c.Desired.Name] = c.Desired
	}
	for _, c := range plan.Finalizers {
		w.say("leader lets go of %s", c.Desired.Name)
		delete(w.exports, c.Desired.Name)
	}
}

func (m *memberWorld) observe(w *world) policy.ImportsObserved {
	seen := policy.ImportsObserved{Cluster: m.id, ClusterSet: "set", Missing: m.missing, Tiers: m.tiers, Hold: services.Hold{Active: m.held}}
	for _, i := range w.imports {
		seen.Offered = append(seen.Offered, *i)
	}
	for _, p := range m.policies {
		seen.Present = append(seen.Present, *p)
	}
	return seen
}

func (w *world) importAll(m *memberWorld) {
	if m.upstream {
		return
	}
	for _, i := range policy.Imports(m.observe(w)) {
		switch c := i.Change; {
		case c.Deletes():
			w.say("%s deletes %s", m.id, c.Current.GetName())
			delete(m.policies, c.Current.GetName())
		case c.Desired != nil:
			verb := "updates"
			if c.Current == nil {
				verb = "creates"
			}
			w.say("%s %s %s", m.id, verb, i.Policy)
			complete(c.Desired)
			m.policies[i.Policy] = c.Desired
		}
		if i.Offer == nil {
			continue
		}
		if c := policy.Report(m.id, i.Offer, i.Says, w.now()); c.Desired != nil {
			w.say("%s says of %s: %s", m.id, i.Offer.Name, strings.TrimSpace(fmt.Sprintf("%s %s %s", i.Says.Status, i.Says.Reason, i.Says.Message)))
			w.imports[i.Offer.Name] = c.Desired
		}
	}
}
