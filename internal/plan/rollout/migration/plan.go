package migration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Plan returns the steps of the runbook, in order.
func Plan(o Observed) []rollout.Step {
	var steps []rollout.Step
	var proofs, upgrades []string
	members := make([]member, len(o.Targets))
	for i := range o.Targets {
		m := o.member(i)
		members[i] = m
		steps = append(steps, m.credentialStep(), m.carryStep(), m.switchStep(), m.restartStep(), m.proveStep())
		proofs, upgrades = append(proofs, m.id("prove")), append(upgrades, m.id("upgrade"))
	}
	steps = append(steps, o.leaderStep(proofs))
	for _, m := range members {
		steps = append(steps, m.upgradeStep())
	}
	return append(steps, o.deleteStep(slices.Concat(proofs, []string{"leader"}, upgrades)))
}

// step begins a step of a member: what is wrong with the member is wrong with all
// its steps, and while it is away none of them is done.
func (m *member) step(phase, title string, needs ...string) rollout.Step {
	s := rollout.Step{ID: m.id(phase), Title: title, Lane: m.Context, Findings: m.trouble}
	for _, need := range needs {
		s.Needs = append(s.Needs, m.id(need))
	}
	if m.away != "" {
		s.Waits = []string{fmt.Sprintf("member behind context %q: %s", m.Context, m.away)}
	}
	return s
}

// finish says whether a step is done: nothing to change, nothing to wait for,
// nothing wrong.
func finish(s rollout.Step) rollout.Step {
	s.Done = len(s.Changes) == 0 && len(s.Waits) == 0 && !slices.ContainsFunc(s.Findings, func(f rule.Finding) bool { return f.Severity >= rule.Wait })
	return s
}

func (m *member) credentialStep() rollout.Step {
	s := m.step("credential", fmt.Sprintf("member %q has a credential of its own", m.name()))
	s.Gates = []string{"UPG-CHK-2", "UPG-CHK-4"}
	s.Never = "binds a ServiceAccount anew that is bound to another ID"
	s.Rests = []string{fmt.Sprintf("account %s bound %v", m.account, m.bound)}
	if m.away != "" {
		return s
	}
	if m.o.Journal[m.id("id")].Value != m.ID {
		s.Record = []rollout.Entry{entry(m.id("id"), m.ID)} // for when it is away
	}
	area := m.o.Evidence.Leader.Namespace
	if !m.bound {
		s.Changes = append(s.Changes, rollout.Change{Do: rollout.Create, Kind: "ServiceAccount", Namespace: area, Name: m.account,
			Fields: []rollout.Field{{Path: "metadata.annotations[" + v1alpha1.AnnotationClusterID + "]", To: m.ID}}})
	}
	grants, ok := m.o.Evidence.Leader.Grants.Get()
	if !ok {
		s.Findings = append(s.Findings, unread("UPG-CHK-4", "", "the bindings of the common area", m.o.Evidence.Leader.Grants.Problem()))
	}
	if !m.granted() {
		if i := slices.IndexFunc(grants, func(g grant) bool { return g.Kind == "RoleBinding" && g.Name == m.account }); i >= 0 {
			s.Findings = append(s.Findings, rule.Finding{Rule: "UPG-CHK-4", Severity: rule.Refuse, Cluster: m.ID,
				Message: fmt.Sprintf("RoleBinding %q exists and grants something else", m.account), Remedy: "delete it, or choose another name for the token"})
		}
		s.Changes = append(s.Changes, rollout.Change{Do: rollout.Create, Kind: "RoleBinding", Namespace: area, Name: m.account,
			Fields: []rollout.Field{{Path: "roleRef.name", To: v1alpha1.MemberClusterRole}, {Path: "subjects[0].name", To: m.account}}})
	}
	token, there := m.token()
	switch {
	case m.own(): // it has one, of whatever kind
	case !there && m.taken():
		s.Findings = append(s.Findings, rule.Finding{Rule: "UPG-CHK-4", Severity: rule.Refuse, Cluster: m.ID,
			Message: fmt.Sprintf("Secret %q exists in the common area and is no token of ServiceAccount %q", m.account, m.account), Remedy: "delete it, or choose another name for the token"})
	case !there:
		s.Changes = append(s.Changes, rollout.Change{Do: rollout.Create, Kind: "Secret", Namespace: area, Name: m.account,
			Fields: []rollout.Field{{Path: "type", To: "kubernetes.io/service-account-token"}}})
	case !token.Signed:
		s.Waits = append(s.Waits, fmt.Sprintf("kube-controller-manager of the leader to sign the token of Secret %q", token.Secret))
	}
	return finish(s)
}

// taken tells whether a Secret of the common area has the name that the token of
// this member would get.
func (m *member) taken() bool {
	names, _ := m.o.Evidence.Leader.Secrets.Get()
	return slices.Contains(names, m.account)
}

// granted tells whether some RoleBinding gives the account the Role of members.
func (m *member) granted() bool {
	grants, _ := m.o.Evidence.Leader.Grants.Get()
	for _, g := range grants {
		for _, s := range g.Subjects {
			if g.MemberRole && s.Kind == "ServiceAccount" && s.Name == m.account && s.Namespace == m.o.Evidence.Leader.Namespace {
				return true
			}
		}
	}
	return false
}

func (m *member) carryStep() rollout.Step {
	s := m.step("carry", fmt.Sprintf("the token of member %q is in its cluster", m.name()), "credential")
	s.Never = "writes a token to a disk or an output, or into the Secret that is in use"
	if m.away != "" || m.own() {
		return finish(s)
	}
	token, _ := m.token()
	s.Rests = []string{"token " + token.Credential}
	place, there := m.secret(m.place())
	change := rollout.Change{Do: rollout.Create, Kind: "Secret", Lane: m.Context, Namespace: m.Namespace, Name: m.place(), Seen: place.Seen,
		Fields: []rollout.Field{{Path: "data", To: carried + m.account}}}
	switch {
	case !there:
		s.Changes = append(s.Changes, change)
	case place.Type != "Opaque":
		s.Findings = append(s.Findings, rule.Finding{Rule: "UPG-CHK-5", Severity: rule.Refuse, Cluster: m.ID,
			Message: fmt.Sprintf("Secret %q of member %q is of type %q, and a member reads one of type Opaque", place.Name, m.ID, place.Type), Remedy: "delete it, or choose another name for the token"})
	case place.Credential == token.Credential && token.Credential != "":
	case !place.Ours:
		s.Findings = append(s.Findings, rule.Finding{Rule: "UPG-CHK-5", Severity: rule.Refuse, Cluster: m.ID,
			Message: fmt.Sprintf("Secret %q of member %q holds something else and was not made by this program", place.Name, m.ID), Remedy: "delete it, or choose another name for the token"})
	default:
		change.Do = rollout.Update
		s.Changes = append(s.Changes, change)
	}
	return finish(s)
}

func (m *member) switchStep() rollout.Step {
	s := m.step("switch", fmt.Sprintf("member %q uses its own credential", m.name()), "carry")
	s.Until = m.id("prove")
	s.Never = "changes cluster ID, leader or server"
	if m.away != "" || m.own() {
		return finish(s)
	}
	s.Gates = []string{"UPG-CHK-6", "UPG-CHK-8", "UPG-CHK-27"}
	s.Findings = append(s.Findings, m.o.gate(m.ID, false, "UPG-CHK-8", "UPG-CHK-27")...)
	// A member whose processes nobody sees may fall silent by this, and could not be
	// proven after it.
	s.Findings = append(s.Findings, unknowns(m.o.gate(m.ID, false, "UPG-CHK-6"))...)
	s.Rests = []string{fmt.Sprintf("ClusterSet names %s, a token of %s/%s", m.named(), m.credential.Namespace, m.credential.Account)}
	s.Changes = []rollout.Change{{Do: rollout.Update, Kind: "ClusterSet", Lane: m.Context, Namespace: m.Namespace, Name: m.o.Set, Seen: m.SetVersion,
		Fields: []rollout.Field{{Path: "spec.leaders[0].secret", From: m.named(), To: m.place()}}}}
	return finish(s)
}

// restartStep: an upstream controller keeps its first connection (WK-2) and stops
// its heartbeat when it has to make another (WK-4). Ours takes a new credential
// while it runs. The old processes run on until the new ones are ready, so a
// roll-out that is under way is waited for: to begin another at every look would
// let none of them ever be ready.
func (m *member) restartStep() rollout.Step {
	s := m.step("restart", fmt.Sprintf("the controller of member %q runs since its last change of credential", m.name()), "switch")
	s.Never = "restarts a controller that takes a new credential while it runs"
	if m.away != "" {
		return s
	}
	s.Gates = []string{"UPG-CHK-6"}
	for _, f := range m.o.gate(m.ID, false, s.Gates...) {
		if f.Unknown || len(f.Objects) == 0 {
			s.Findings = append(s.Findings, f)
			continue
		}
		rolling, known := m.Rolling.Get()
		if !known {
			s.Findings = append(s.Findings, unread("UPG-CHK-6", m.ID, "whether its controller is being rolled out", m.Rolling.Problem()))
			continue
		}
		if rolling != "" {
			s.Waits, s.Begun = append(s.Waits, rolling), true
			continue
		}
		s.Changes = append(s.Changes, rollout.Change{Do: rollout.Restart, Kind: "Deployment", Lane: m.Context, Namespace: f.Objects[0].Namespace, Name: f.Objects[0].Name,
			Seen: m.DeploymentVersion})
	}
	return finish(s)
}

func (m *member) name() string {
	if m.ID == "" {
		return m.Context
	}
	return m.ID
}

// upgradeStep brings the member's controller to the wanted version.
func (m *member) upgradeStep() rollout.Step {
	s := m.step("upgrade", fmt.Sprintf("the controller of member %q is as wanted", m.name()))
	s.Needs = []string{"leader"}
	s.Until = m.id("prove") // which its new processes have to give again
	s.Never = "touches a ServiceExport, an imported Service or the ClusterSet"
	if m.away != "" {
		return s
	}
	return finish(m.Install.into(s, m.Context))
}

func (o Observed) leaderStep(proofs []string) rollout.Step {
	s := rollout.Step{
		ID: "leader", Title: "the leader's controller is as wanted", Needs: proofs, Grave: true,
		Gates: []string{"UPG-CHK-1", "UPG-CHK-5", "UPG-CHK-6", "UPG-CHK-7", "UPG-CHK-8", "UPG-CHK-10", "UPG-CHK-17", "UPG-CHK-18", "UPG-CHK-27"},
		Never: "happens before every member is proven to use its own credential; nothing overrides that",
	}
	s = o.Leader.into(s, "")
	if len(s.Changes) > 0 {
		s.Findings = append(s.Findings, o.gate("", true, s.Gates...)...)
	}
	s.Findings = append(s.Findings, o.leftOut()...)
	return finish(s)
}

// leftOut are members that the run does not name. Nothing is known of what they
// use.
func (o Observed) leftOut() []rule.Finding {
	announces, ok := o.Evidence.Leader.Announces.Get()
	if !ok {
		return []rule.Finding{unread("UPG-CHK-1", "", "the announces", o.Evidence.Leader.Announces.Problem())}
	}
	var found []rule.Finding
	for _, a := range announces {
		if slices.ContainsFunc(o.Evidence.Members, func(m memberEvidence) bool { return m.ID == a.ClusterID }) {
			continue
		}
		found = append(found, rule.Finding{
			Rule: "UPG-CHK-5", Severity: rule.Refuse, Cluster: a.ClusterID, Unknown: true,
			Objects: []rule.Object{{Kind: "MemberClusterAnnounce", Namespace: a.Namespace, Name: a.Name}},
			Message: fmt.Sprintf("member %q is not among the members of this run, so nobody knows which credential it uses", a.ClusterID),
			Remedy:  "add the context of that member, or let it leave",
		})
	}
	return found
}

// into adds to a step what applying the manifests would change.
func (i Install) into(s rollout.Step, lane string) rollout.Step {
	if !i.Wanted {
		return s
	}
	differs, ok := i.Differs.Get()
	if !ok {
		s.Findings = append(s.Findings, unread("UPG-CHK-16", lane, "what applying the manifests would change", i.Differs.Problem()))
		return s
	}
	if i.Ending {
		s.Waits, s.Begun = append(s.Waits, "the old Deployment and its Pods to be gone"), true
		return s
	}
	if i.Selector {
		s.Record = append(s.Record, entry(ReplicasOf(lane), strconv.Itoa(i.Replicas)))
		s.Changes = append(s.Changes, rollout.Change{Do: rollout.Delete, Kind: "Deployment", Lane: lane, Namespace: i.Namespace, Name: i.Deployment, Seen: i.Seen, Alone: true,
			Fields: []rollout.Field{{Path: "spec.selector", From: "of an old release, which cannot be changed (UPG-CHK-16)"}}})
	}
	if len(differs) > 0 || i.Selector {
		// The same change until it is done, however much of it is done already: an
		// approval is for it.
		change := rollout.Change{Do: rollout.Apply, Kind: "manifests", Lane: lane, Namespace: i.Namespace, Name: i.Deployment,
			Fields: []rollout.Field{{Path: "image", To: i.Image}}}
		if i.Present != "" && i.Present != i.Image {
			change.Beside = append(change.Beside, rollout.Field{Path: "image", From: i.Present})
		}
		if len(differs) > 0 {
			change.Beside = append(change.Beside, rollout.Field{Path: "differs", To: strings.Join(differs, " ")})
		}
		s.Changes = append(s.Changes, change)
		return s
	}
	if i.Missing != "" {
		s.Waits, s.Begun = append(s.Waits, i.Missing), true
	}
	return s
}

func unread(id, cluster, what, why string) rule.Finding {
	return rule.Finding{Rule: id, Severity: rule.Refuse, Unknown: true, Cluster: cluster,
		Message: fmt.Sprintf("unknown: could not read %s: %s", what, why), Evidence: []string{why}, Remedy: "make it readable and look again"}
}
