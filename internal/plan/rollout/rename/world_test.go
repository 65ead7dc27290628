package rename_test

import (
	"fmt"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/rename"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

const (
	area    = "antrea-multicluster"
	now     = "2026-03-01T08:00:00Z"
	address = "10.71.0.1"
)

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

// world is a ClusterSet of one member that is renamed and one that imports from
// it: the slow and obvious twin of real clusters.
type world struct {
	accounts map[string]string // name → bound ID
	signed   map[string]bool   // token of the account
	foreign  map[string]bool   // account not made by a command line

	id, mark, names string            // of the member's ClusterSet: ID, renamed-from, Secret
	secrets         map[string]string // of the member: name → account
	announces       map[string]string // ID → account it was last written with
	exports         map[string]bool   // ID → its export of web is in the common area
	imports         map[string]bool   // ID → the other member has its endpoints
	upstream        bool
	lag             int // ticks until the other member follows
	late            int

	old, new string
	unseen   []string
	hidden   bool // the other member is not among the contexts
	faults   []string
}

func newWorld(old, to string) *world {
	return &world{
		accounts: map[string]string{old + "-token": old, "west-token": "west"}, signed: map[string]bool{old + "-token": true, "west-token": true}, foreign: map[string]bool{},
		id: old, names: old + "-token", secrets: map[string]string{old + "-token": old + "-token"},
		announces: map[string]string{old: old + "-token", "west": "west-token"}, exports: map[string]bool{old: true}, imports: map[string]bool{old: true},
		old: old, new: to,
	}
}

func credential(account string) string { return "digest of " + account }

// tick is what controllers do.
func (w *world) tick() {
	for a := range w.accounts {
		w.signed[a] = true
	}
	if account := w.secrets[w.names]; w.accounts[account] == w.id && w.signed[account] {
		w.announces[w.id] = account
		w.exports[w.id] = true
	} else {
		w.fault("the member cannot beat as %s with %q", w.id, account)
	}
	for id := range w.exports {
		if w.announces[id] == "" {
			delete(w.exports, id)
		}
	}
	if w.late++; w.late > w.lag {
		w.late = 0
		w.imports = map[string]bool{}
		for id := range w.exports {
			w.imports[id] = true
		}
	}
	w.check()
}

// check is the promise.
func (w *world) check() {
	if len(w.imports) == 0 {
		w.fault("the other member has no endpoint")
	}
}

func (w *world) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func (w *world) change(c rollout.Change) {
	switch string(c.Do) + " " + c.Kind {
	case "create ServiceAccount":
		w.accounts[c.Name] = c.Fields[0].To
	case "create RoleBinding":
	case "create Secret":
		if c.Lane == "" {
			w.signed[c.Name] = w.signed[c.Name] || false
			return
		}
		w.secrets[c.Name] = c.Fields[0].To[strings.LastIndex(c.Fields[0].To, " ")+1:]
	case "update ClusterSet":
		if len(c.Fields) == 1 {
			w.mark = ""
			return
		}
		w.id, w.names, w.mark = c.Fields[0].To, c.Fields[1].To, c.Fields[2].To
	case "delete MemberClusterAnnounce":
		if w.id == w.old {
			w.fault("the announce goes before the member is renamed")
		}
		delete(w.announces, w.old)
	case "delete ServiceAccount":
		delete(w.accounts, c.Name)
	case "delete Secret":
		if c.Name == w.names {
			w.fault("the Secret in use is deleted")
		}
		delete(w.secrets, c.Name)
	default:
		w.fault("nobody knows how to %s", c)
	}
}

func (w *world) decide() rollout.Decision {
	return rollout.Decide(rename.Plan(w.observe()), rollout.Policy{})
}

func (w *world) observe() rename.Observed {
	o := rename.Observed{Old: w.old, New: w.new, Account: w.new + "-token", Unseen: w.unseen, Imported: map[string]rule.Read[map[types.NamespacedName]rename.Ready]{}}
	l := &o.Evidence.Leader
	l.Namespace = area
	var announces []v1alpha1.MemberClusterAnnounce
	var exports []v1alpha1.ResourceExport
	var slices []discoveryv1.EndpointSlice
	for id, account := range w.announces {
		announces = append(announces, w.announce(id, account))
	}
	for id := range w.exports {
		exports = append(exports, export(id))
		slices = append(slices, slice(id))
	}
	var accounts []admission.Account
	var credentials []rename.Credential
	for name, id := range w.accounts {
		accounts = append(accounts, admission.Account{Name: name, Annotated: true, BoundID: id})
		c := rename.Credential{Account: name, BoundID: id, Whole: true, Ours: !w.foreign[name]}
		if w.signed[name] {
			c.Token = credential(name)
		}
		if id == w.old || id == w.new || name == o.Account {
			credentials = append(credentials, c)
		}
	}
	at, _ := time.Parse(time.RFC3339, now)
	l.Now = rule.Known(at)
	l.Announces, l.Exports, l.Slices, l.Accounts = rule.Known(announces), rule.Known(exports), rule.Known(slices), rule.Known(accounts)
	o.Credentials = rule.Known(credentials)
	var secrets []rename.Secret
	for name, account := range w.secrets {
		secrets = append(secrets, rename.Secret{Name: name, Type: "Opaque", Credential: credential(account), Ours: true, Serves: true})
	}
	o.Secrets = rule.Known(secrets)
	o.Parts = preflight.Parts{ClusterSet: "fleet", Members: []preflight.Part{{Context: "kube-east", ID: w.id, Namespace: "kube-system"}}}
	o.Evidence.Members = []preflight.Member{w.member()}
	if !w.hidden {
		ready := rename.Ready{}
		if w.imports[w.old] {
			ready.Old = 1
		}
		if w.imports[w.new] {
			ready.New = 1
		}
		o.Imported["west"] = rule.Known(map[types.NamespacedName]rename.Ready{web: ready})
	}
	return o
}

func (w *world) member() preflight.Member {
	set := v1alpha2.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "fleet", Namespace: "kube-system"}}
	set.Spec = v1alpha2.ClusterSetSpec{ClusterID: w.id, Namespace: area, Leaders: []v1alpha2.LeaderCluster{{ClusterID: "hub", Server: "https://hub", Secret: w.names}}}
	if w.mark != "" {
		set.Annotations = map[string]string{v1alpha1.AnnotationRenamedFrom: w.mark}
	}
	m := preflight.Member{ID: w.id, Cluster: preflight.Cluster{UID: "uid-east", ClusterSets: rule.Known([]v1alpha2.ClusterSet{set})}}
	m.Credential = rule.Known(preflight.Credential{Secret: w.names, Namespace: area, Account: w.secrets[w.names]})
	m.Exported = rule.Known([]preflight.Exported{{NamespacedName: web, Valid: true, Addresses: []string{address}}})
	m.Gateways = rule.Known([]v1alpha1.Gateway(nil))
	m.GatewayNodes = rule.Known([]preflight.GatewayNode(nil))
	m.Labels = rule.Known([]string(nil))
	return m
}

func (w *world) announce(id, account string) v1alpha1.MemberClusterAnnounce {
	a := v1alpha1.MemberClusterAnnounce{ObjectMeta: metav1.ObjectMeta{Name: identity.AnnounceName(id), Namespace: area}, ClusterID: id}
	a.Annotations = map[string]string{
		v1alpha1.AnnotationTouch: now, v1alpha1.AnnotationClusterUID: "uid-east", v1alpha1.AnnotationPeer: v1alpha1.PeerVersion,
		v1alpha1.AnnotationPublished: "1", v1alpha1.AnnotationCredential: credential(account),
	}
	if id == "west" {
		a.Annotations[v1alpha1.AnnotationClusterUID] = "uid-west"
	}
	if w.upstream {
		a.Annotations = map[string]string{v1alpha1.AnnotationTouch: now}
	}
	return a
}

func export(id string) v1alpha1.ResourceExport {
	e := v1alpha1.ResourceExport{ObjectMeta: metav1.ObjectMeta{Name: identity.ServiceExportName(id, web), Namespace: area}}
	e.Spec = v1alpha1.ResourceExportSpec{ClusterID: id, Kind: v1alpha1.KindService, Namespace: web.Namespace, Name: web.Name, Service: &v1alpha1.ServiceExport{}}
	e.Status.Conditions = []v1alpha1.ResourceCondition{{Type: v1alpha1.ResourceSucceeded, Status: "True"}}
	return e
}

func slice(id string) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: identity.SliceName(id, web, 0), Namespace: area, Labels: map[string]string{
			mcsv1beta1.LabelSourceCluster: id, v1alpha1.LabelServiceNamespace: web.Namespace, mcsv1beta1.LabelServiceName: web.Name}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}
}
