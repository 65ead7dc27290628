package rename

import (
	"fmt"
	"slices"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Ids of the steps, in their order.
const (
	StepCredential = "credential"
	StepCarry      = "carry"
	StepSwitch     = "switch"
	StepPublish    = "publish"
	StepSeen       = "seen"
	StepWithdraw   = "withdraw"
	StepForget     = "forget"
)

// Plan returns the steps of the rename, in order. They hold nothing but what the
// world shows, so a rename that was stopped anywhere goes on where it was.
func Plan(o Observed) []rollout.Step {
	m := o.find()
	trouble := o.trouble(m)
	if m == nil {
		return []rollout.Step{{ID: StepCredential, Title: fmt.Sprintf("member %q gets ID %q", o.Old, o.New), Findings: trouble}}
	}
	steps := []rollout.Step{
		o.credentialStep(m), o.carryStep(m), o.switchStep(m), o.publishStep(m), o.seenStep(m), o.withdrawStep(m), o.forgetStep(m),
	}
	for i := range steps {
		s := &steps[i]
		for _, earlier := range steps[:i] { // of all: one in between may be done before its turn
			s.Needs = append(s.Needs, earlier.ID)
		}
		s.Findings = append(slices.Clone(trouble), s.Findings...)
		s.Done = len(s.Changes) == 0 && len(s.Waits) == 0 && !slices.ContainsFunc(s.Findings, func(f rule.Finding) bool { return f.Severity >= rule.Wait })
	}
	return steps
}

func (o Observed) credentialStep(m *member) rollout.Step {
	s := rollout.Step{ID: StepCredential, Title: fmt.Sprintf("there is a credential for cluster ID %q", o.New), Never: "binds the present credential anew: it is needed until the end"}
	c := o.credential()
	area := o.Evidence.Leader.Namespace
	switch {
	case !c.Whole:
		if c.BoundID == "" {
			s.Changes = append(s.Changes, rollout.Change{Do: rollout.Create, Kind: "ServiceAccount", Namespace: area, Name: c.Account,
				Fields: []rollout.Field{{Path: "metadata.annotations[" + v1alpha1.AnnotationClusterID + "]", To: o.New}}})
		}
		s.Changes = append(s.Changes,
			rollout.Change{Do: rollout.Create, Kind: "RoleBinding", Namespace: area, Name: c.Account,
				Fields: []rollout.Field{{Path: "roleRef.name", To: v1alpha1.MemberClusterRole}}},
			rollout.Change{Do: rollout.Create, Kind: "Secret", Namespace: area, Name: c.Account,
				Fields: []rollout.Field{{Path: "type", To: "kubernetes.io/service-account-token"}}})
	case c.Token == "":
		s.Waits = append(s.Waits, "kube-controller-manager of the leader to sign the token of ServiceAccount "+c.Account)
	}
	return s
}

func (o Observed) carryStep(m *member) rollout.Step {
	s := rollout.Step{ID: StepCarry, Title: fmt.Sprintf("its token is in the cluster of %q", o.Old), Lane: m.Part.Context,
		Never: "writes a token to a disk or an output, or into the Secret that is in use"}
	c, name := o.credential(), o.place(m)
	s.Rests = []string{"token " + c.Token}
	place, there := o.secret(name)
	change := rollout.Change{Do: rollout.Create, Kind: "Secret", Lane: m.Part.Context, Namespace: m.Part.Namespace, Name: name, Seen: place.Seen,
		Fields: []rollout.Field{{Path: "data", To: "the token of ServiceAccount " + c.Account}}}
	switch {
	case !there:
		s.Changes = append(s.Changes, change)
	case place.Credential == c.Token && c.Token != "":
	case m.switched: // an administrator gave it another, which is bound to New or is not taken
		s.Findings = append(s.Findings, o.gate(o.New, "UPG-CHK-5")...)
	case place.Type != "Opaque" || !place.Ours:
		s.Findings = append(s.Findings, rule.Finding{Rule: "UPG-CHK-5", Severity: rule.Refuse, Cluster: o.Old,
			Message: fmt.Sprintf("Secret %q of member %q holds something else and was not made by this program", name, o.Old), Remedy: "delete it, or choose another name with --token"})
	default:
		change.Do = rollout.Update
		s.Changes = append(s.Changes, change)
	}
	return s
}

func (o Observed) switchStep(m *member) rollout.Step {
	s := rollout.Step{ID: StepSwitch, Title: fmt.Sprintf("member %q calls itself %q", o.Old, o.New), Lane: m.Part.Context, Grave: true,
		Never: "withdraws anything: what was published as " + o.Old + " stays"}
	if m.switched {
		return s
	}
	s.Gates = []string{"UPG-CHK-5", "UPG-CHK-8", "UPG-CHK-27"}
	s.Findings = o.gate(o.Old, s.Gates...)
	s.Rests = []string{"ClusterSet names " + named(m.set)}
	s.Changes = []rollout.Change{{Do: rollout.Update, Kind: "ClusterSet", Lane: m.Part.Context, Namespace: m.set.Namespace, Name: m.set.Name, Seen: m.set.ResourceVersion,
		Fields: []rollout.Field{
			{Path: "spec.clusterID", From: o.Old, To: o.New},
			{Path: "spec.leaders[0].secret", From: named(m.set), To: o.place(m)},
			{Path: "metadata.annotations[" + v1alpha1.AnnotationRenamedFrom + "]", To: o.Old},
		}}}
	return s
}

// withdrawStep deletes the old announce. The leader deletes all exports with it.
func (o Observed) withdrawStep(m *member) rollout.Step {
	s := rollout.Step{ID: StepWithdraw, Title: fmt.Sprintf("nothing is left of %q in the common area", o.Old), Grave: true,
		Never: "happens while another member has endpoints of the old ID only"}
	announce, _ := o.announce(o.Old)
	if announce != nil && announce.DeletionTimestamp.IsZero() {
		s.Changes = []rollout.Change{{Do: rollout.Delete, Kind: "MemberClusterAnnounce", Namespace: announce.Namespace, Name: announce.Name, Seen: announce.ResourceVersion}}
		return s
	}
	exports, ok := o.Evidence.Leader.Exports.Get()
	if !ok {
		s.Findings = append(s.Findings, unread("the exports", o.Evidence.Leader.Exports.Problem()))
	}
	left := 0
	for _, e := range exports {
		if e.Spec.ClusterID == o.Old {
			left++
		}
	}
	if left > 0 || announce != nil {
		s.Waits = []string{fmt.Sprintf("the leader to delete what %q exported: %d exports are left", o.Old, left)}
	}
	return s
}

// forgetStep takes away what only the old ID needed. The mark on the ClusterSet goes
// last: while it is there, a rename that was stopped here is known for one.
func (o Observed) forgetStep(m *member) rollout.Step {
	s := rollout.Step{ID: StepForget, Title: fmt.Sprintf("no credential acts as %q", o.Old), Never: "deletes what was not made by a command line"}
	for _, c := range o.of(o.Old) {
		if !c.Ours {
			s.Findings = append(s.Findings, rule.Finding{Rule: "UPG-CHK-2", Severity: rule.Warn, Message: fmt.Sprintf("ServiceAccount %q is bound to %q and was not made by this program", c.Account, o.Old),
				Objects: []rule.Object{{Kind: "ServiceAccount", Namespace: o.Evidence.Leader.Namespace, Name: c.Account}}, Remedy: "delete it, with its RoleBinding and its token Secrets"})
			continue
		}
		s.Changes = append(s.Changes, rollout.Change{Do: rollout.Delete, Kind: "ServiceAccount", Namespace: o.Evidence.Leader.Namespace, Name: c.Account})
	}
	all, _ := o.Secrets.Get()
	for _, secret := range all {
		if secret.Ours && secret.Serves && secret.Name != o.place(m) {
			s.Changes = append(s.Changes, rollout.Change{Do: rollout.Delete, Kind: "Secret", Lane: m.Part.Context, Namespace: m.Part.Namespace, Name: secret.Name, Seen: secret.Seen})
		}
	}
	if from := m.set.Annotations[v1alpha1.AnnotationRenamedFrom]; from != "" || !m.switched {
		s.Changes = append(s.Changes, rollout.Change{Do: rollout.Update, Kind: "ClusterSet", Lane: m.Part.Context, Namespace: m.set.Namespace, Name: m.set.Name, Seen: m.set.ResourceVersion,
			Fields: []rollout.Field{{Path: "metadata.annotations[" + v1alpha1.AnnotationRenamedFrom + "]", From: o.Old}}})
	}
	return s
}

// gate asks rules about one member.
func (o Observed) gate(cluster string, ids ...string) []rule.Finding {
	var found []rule.Finding
	for _, check := range preflight.Checks() {
		if !slices.Contains(ids, check.ID) {
			continue
		}
		for _, f := range check.Find(o.Evidence) {
			if f.Cluster == cluster {
				found = append(found, f)
			}
		}
	}
	return found
}

func unread(what, why string) rule.Finding {
	return rule.Finding{Rule: "UPG-CHK-26", Severity: rule.Refuse, Unknown: true,
		Message: fmt.Sprintf("unknown: could not read %s: %s", what, why), Evidence: []string{why}, Remedy: "make it readable and look again"}
}
