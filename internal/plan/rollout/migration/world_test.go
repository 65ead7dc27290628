package migration_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/migration"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

const (
	area   = "antrea-multicluster"
	shared = "antrea-mc-member-access-sa"
	begin  = "2026-03-01T08:00:00Z"
)

// world is a ClusterSet as simple as it can be and still go wrong: the slow and
// obvious twin of real clusters.
type world struct {
	now      time.Time
	accounts map[string]string // name → bound ID, "" when it is not annotated
	bindings map[string]string // name → ServiceAccount
	tokens   map[string]bool   // token Secret, named as its account → signed
	members  map[string]*cluster
	leader   string // image
	wanted   string // image
	journal  map[string]migration.Remembered
	policy   rollout.Policy
	override []string
	without  []string // members the run does not name
	faults   []string
	others   []string // names of other Secrets of the common area
	replaced replaced
}

// replaced is a leader whose Deployment has to be deleted before it is upgraded.
type replaced struct {
	selector bool // of an old release
	ending   int  // ticks until the deleted one is gone
	gone     bool
	replicas int
}

// cluster is one member.
type cluster struct {
	id       string
	upstream bool
	away     string
	secrets  map[string]string // name → account whose token it holds
	names    string            // Secret that the ClusterSet names
	directed time.Time         // last change of the ClusterSet
	written  map[string]time.Time
	started  time.Time
	image    string
	boot     string // credential the process of an upstream member began with
	rebeats  int    // beats since its credential changed under it
	touch    time.Time
	told     string
	skew     time.Duration     // of its clock
	types    map[string]string // of Secrets that are not Opaque
	twin     string            // the cluster it is the same as
	slow     int               // ticks that a roll-out takes
	rolling  int               // ticks until the present one is over
	unseen   bool              // nobody can see its controller
}

func newFleet(upstream bool, names ...string) *world {
	at, _ := time.Parse(time.RFC3339, begin)
	w := &world{
		now: at, accounts: map[string]string{shared: "", "antrea-mc-controller": "", "default": ""},
		bindings: map[string]string{"antrea-mc-member-cluster-rolebinding": shared}, tokens: map[string]bool{shared: true},
		members: map[string]*cluster{}, leader: "lockstep:v2.6", wanted: "lockstep:v2.7", journal: map[string]migration.Remembered{},
	}
	for _, name := range names {
		w.members[name] = &cluster{
			id: name, upstream: upstream, secrets: map[string]string{"leader-token": shared}, names: "leader-token", directed: at.Add(-time.Hour),
			written: map[string]time.Time{"leader-token": at.Add(-time.Hour)}, started: at.Add(-time.Minute), image: "lockstep:v2.6", boot: shared, touch: at, told: shared,
		}
	}
	return w
}

func (w *world) names() []string {
	names := slices.Sorted(maps.Keys(w.members))
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(w.without, n) })
}

// tick is ten seconds of everybody's life.
func (w *world) tick() {
	w.now = w.now.Add(10 * time.Second)
	for name := range w.tokens {
		w.tokens[name] = true
	}
	if w.replaced.ending > 0 {
		w.replaced.ending--
		w.replaced.gone = w.replaced.ending == 0
	}
	for _, name := range slices.Sorted(maps.Keys(w.members)) {
		c := w.members[name]
		if c.rolling--; c.rolling == 0 {
			c.begin(w.now)
		}
		w.beat(c)
	}
}

// beat is what the processes of a member do: the heartbeat and all other writers.
func (w *world) beat(c *cluster) {
	if c.away != "" {
		return
	}
	heart, others := c.secrets[c.names], c.secrets[c.names]
	if c.upstream {
		others = c.boot // WK-2
		if heart != c.boot {
			c.rebeats++
		}
	}
	w.check(c, "exports", others)
	if !w.accepted(c, heart) {
		w.fault("%s: heartbeat denied with %q", c.id, heart)
		return
	}
	if c.rebeats > 1 { // WK-4
		return
	}
	c.touch, c.told = w.now.Add(c.skew), heart
}

func (w *world) check(c *cluster, what, credential string) {
	if !w.accepted(c, credential) {
		w.fault("%s: %s denied with %q", c.id, what, credential)
	}
}

// accepted by the leader: known, with the rights of a member, and bound to the ID
// once the leader is strict.
func (w *world) accepted(c *cluster, account string) bool {
	bound, there := w.accounts[account]
	_, granted := w.bindings[bindingOf(w, account)]
	return there && w.tokens[account] && granted && (w.leader != w.wanted || bound == c.id)
}

func bindingOf(w *world, account string) string {
	for name, subject := range w.bindings {
		if subject == account {
			return name
		}
	}
	return ""
}

func (w *world) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// observe is what a driver would read.
func (w *world) observe() migration.Observed {
	o := migration.Observed{Set: "prod", Journal: maps.Clone(w.journal), Override: w.override, TokenSecrets: map[string][]string{}}
	o.Leader = w.install("", w.leader)
	o.Evidence = preflight.Evidence{CLI: rule.Known(""), Leader: w.observeLeader()}
	var tokens []migration.Token
	for _, account := range slices.Sorted(maps.Keys(w.tokens)) {
		tokens = append(tokens, migration.Token{Secret: account, Account: account, Signed: w.tokens[account], Credential: "hash-" + account})
		o.TokenSecrets[account] = []string{account}
	}
	o.Tokens = rule.Known(tokens)
	for _, name := range w.names() {
		target, evidence := w.observeMember(name, w.members[name])
		o.Targets, o.Evidence.Members = append(o.Targets, target), append(o.Evidence.Members, evidence)
	}
	return o
}

func (w *world) install(lane, image string) migration.Install {
	i := migration.Install{Wanted: w.wanted != "", Image: w.wanted, Present: image, Deployment: "antrea-mc-controller", Namespace: area, Differs: rule.Known([]string(nil))}
	if lane != "" {
		i.Namespace = "kube-system"
	}
	if image != w.wanted {
		i.Differs = rule.Known([]string{"Deployment/antrea-mc-controller"})
	}
	if lane == "" {
		i.Selector, i.Ending, i.Replicas = w.replaced.selector, w.replaced.ending > 0, w.replaced.replicas
		if w.replaced.gone {
			i.Present, i.Replicas = "", 0
		}
	}
	return i
}

func (w *world) observeLeader() preflight.Leader {
	l := preflight.Leader{
		Cluster:   preflight.Cluster{UID: "uid-leader", Kubernetes: rule.Known("v1.37.2"), ClusterSets: rule.Known([]v1alpha2.ClusterSet{setOf(area, "hub", "")}), Legacy: rule.Known(preflight.Legacy{})},
		Namespace: area, Now: rule.Known(w.now), Secrets: rule.Known(append(slices.Sorted(maps.Keys(w.tokens)), w.others...)),
		Exports: rule.Known([]v1alpha1.ResourceExport(nil)),
	}
	l.Controllers = rule.Known([]preflight.Controller{{Role: "leader", Namespace: area, Name: "antrea-mc-controller", Version: versionOf(w.leader), Started: []time.Time{w.now}}})
	var announces []v1alpha1.MemberClusterAnnounce
	for _, name := range slices.Sorted(maps.Keys(w.members)) {
		announces = append(announces, w.announce(w.members[name]))
	}
	l.Announces = rule.Known(announces)
	var accounts []admission.Account
	for _, name := range slices.Sorted(maps.Keys(w.accounts)) {
		accounts = append(accounts, admission.Account{Name: name, Annotated: w.accounts[name] != "", BoundID: w.accounts[name]})
	}
	l.Accounts = rule.Known(accounts)
	var grants []preflight.Grant
	for _, name := range slices.Sorted(maps.Keys(w.bindings)) {
		grants = append(grants, preflight.Grant{Kind: "RoleBinding", Name: name, MemberRole: true, WritesExports: true,
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: area, Name: w.bindings[name]}}})
	}
	l.Grants = rule.Known(grants)
	return l
}

func setOf(namespace, id, secret string) v1alpha2.ClusterSet {
	leader := v1alpha2.LeaderCluster{ClusterID: "hub", Secret: secret}
	if secret != "" {
		leader.Server = "https://hub.example.com:6443"
	}
	return v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: "prod", Namespace: namespace},
		Spec:       v1alpha2.ClusterSetSpec{ClusterID: id, Namespace: area, Leaders: []v1alpha2.LeaderCluster{leader}},
	}
}

func versionOf(image string) string {
	_, tag, _ := strings.Cut(image, ":")
	return tag
}

func (w *world) announce(c *cluster) v1alpha1.MemberClusterAnnounce {
	a := v1alpha1.MemberClusterAnnounce{
		ObjectMeta: metav1.ObjectMeta{Name: identity.AnnounceName(c.id), Namespace: area, Annotations: map[string]string{v1alpha1.AnnotationTouch: c.touch.Format(time.RFC3339)}},
		ClusterID:  c.id, ClusterSetID: "prod", LeaderClusterID: "hub",
	}
	if !c.upstream {
		a.Annotations[v1alpha1.AnnotationCredential] = "hash-" + c.told
		a.Annotations[v1alpha1.AnnotationPeer], a.Annotations[v1alpha1.AnnotationPublished] = "v1", "session"
	}
	return a
}

func (w *world) observeMember(name string, c *cluster) (migration.Target, preflight.Member) {
	target := migration.Target{Context: name, Namespace: "kube-system", Install: w.install(name, c.image), Rolling: rule.Known("")}
	if c.rolling > 0 {
		target.Rolling, target.Install.Missing = rule.Known("its old process to end"), "its old process to end"
	}
	for _, secret := range slices.Sorted(maps.Keys(c.secrets)) {
		target.Secrets = append(target.Secrets, migration.Secret{Name: secret, Type: cmp.Or(c.types[secret], "Opaque"), Credential: "hash-" + c.secrets[secret], Ours: true})
	}
	controllers := []preflight.Controller{{Role: "member", Namespace: "kube-system", Name: "antrea-mc-controller", Upstream: c.upstream, Version: versionOf(c.image), Started: []time.Time{c.started}}}
	if c.unseen {
		controllers = nil
	}
	account := c.secrets[c.names]
	credential := preflight.Credential{Secret: c.names, Namespace: area, Account: account, Written: c.written[c.names], Directed: c.directed}
	if _, there := w.accounts[account]; !there || !w.tokens[account] {
		credential.Rejected = "Unauthorized"
	}
	return target, preflight.Member{
		ID: c.id, Credential: rule.Known(credential), Exported: rule.Known([]preflight.Exported(nil)), Settings: rule.Known(preflight.Settings{}),
		Cluster: preflight.Cluster{
			UID: types.UID("uid-" + cmp.Or(c.twin, name)), Unreachable: c.away, Kubernetes: rule.Known("v1.37.2"), Legacy: rule.Known(preflight.Legacy{}),
			ClusterSets: rule.Known([]v1alpha2.ClusterSet{setOf("kube-system", c.id, c.names)}),
			Controllers: rule.Known(controllers),
		},
	}
}

// change makes one change of a plan.
func (w *world) change(c rollout.Change) {
	m := w.members[c.Lane]
	switch string(c.Do) + " " + c.Kind {
	case "create ServiceAccount":
		w.accounts[c.Name] = c.Fields[0].To
	case "create RoleBinding":
		w.bindings[c.Name] = c.Fields[1].To
	case "create Secret", "update Secret":
		if m == nil {
			w.tokens[c.Name] = false
			return
		}
		m.secrets[c.Name], m.written[c.Name] = strings.TrimPrefix(c.Fields[0].To, "the token of ServiceAccount "), w.now
	case "update ClusterSet":
		m.names, m.directed = c.Fields[0].To, w.now
	case "restart Deployment":
		m.restart(w.now.Add(time.Second))
	case "apply manifests":
		if m == nil {
			if w.replaced.gone {
				w.replaced.replicas, _ = strconv.Atoi(w.journal[migration.ReplicasOf("")].Value)
			}
			w.leader, w.replaced.gone = w.wanted, false
			return
		}
		m.image = w.wanted
		m.restart(w.now.Add(time.Second))
	case "delete Deployment":
		w.replaced.selector, w.replaced.ending = false, 2
	case "delete Secret":
		delete(w.tokens, c.Name)
	case "delete ServiceAccount":
		if w.accounts[c.Name] != "" {
			w.fault("the account of %q was deleted", w.accounts[c.Name])
		}
		delete(w.accounts, c.Name)
		delete(w.tokens, c.Name)
	case "delete RoleBinding":
		delete(w.bindings, c.Name)
	default:
		w.fault("nobody knows how to %s", c)
	}
}

// restart replaces the processes. Until new ones are ready the old ones run, and
// another restart makes them wait anew.
func (c *cluster) restart(at time.Time) {
	if c.rolling = c.slow; c.slow == 0 {
		c.begin(at)
	}
}

func (c *cluster) begin(at time.Time) {
	c.started, c.boot, c.rebeats = at, c.secrets[c.names], 0
}

// decide is one look of a driver; the journal is written with it.
func (w *world) decide() rollout.Decision {
	policy := w.policy
	policy.Agreed = map[string]string{}
	for key, e := range w.journal {
		if step, ok := strings.CutPrefix(key, rollout.AgreedPrefix); ok {
			policy.Agreed[step] = e.Value
		}
	}
	decision := rollout.Decide(migration.Plan(w.observe()), policy)
	for _, e := range decision.Record() {
		w.journal[e.Key] = migration.Remembered{Value: e.Value, At: w.now}
	}
	return decision
}

// end is what must be the same however the run was interrupted.
func (w *world) end() string {
	var b strings.Builder
	fmt.Fprintln(&b, "accounts", w.accounts, "bindings", w.bindings, "tokens", w.tokens, "leader", w.leader)
	for _, name := range slices.Sorted(maps.Keys(w.members)) {
		c := w.members[name]
		fmt.Fprintln(&b, name, "uses", c.secrets[c.names], "from", c.names, "runs", c.image)
	}
	return b.String()
}
