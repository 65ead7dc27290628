package migration

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// proveStep is done when every writer of the member is known to use its own
// credential:
//
//	a member of ours  says with each heartbeat which token it was written with, and
//	                  all its writers share one connection
//	any other         runs in processes that began after the last change, and still
//	                  beats 40 s later
//
// In both cases a heartbeat has come since the change was first seen, which is
// what the journal is for, and every Service that it exports is in the common area
// under its ID.
func (m *member) proveStep() rollout.Step {
	s := m.step("prove", fmt.Sprintf("every writer of member %q is proven to use its own credential", m.name()), "switch", "restart")
	s.Gates = []string{"UPG-CHK-5", "UPG-CHK-6", "UPG-CHK-27"}
	s.Never = "takes the word of the member's own status for it"
	if m.away != "" {
		return s
	}
	s.Findings = append(s.Findings, unknowns(m.o.gate(m.ID, false, s.Gates...))...)
	if len(m.trouble) > 0 {
		return s // what was proven of it stands until all can be read again
	}
	if !m.own() {
		s.Waits = []string{"it still uses another credential"}
		if m.o.Journal[m.id("base")].Value != "" { // what was proven of it is over
			s.Record = []rollout.Entry{entry(m.id("base"), ""), entry(m.id("late"), "")}
		}
		return s
	}
	if len(m.o.gate(m.ID, false, "UPG-CHK-6")) > 0 { // an unknown one refuses already
		s.Waits = []string{"its controller runs since before its last change of credential"}
		return s
	}
	now, ok := m.o.Evidence.Leader.Now.Get()
	announce, read := m.announce()
	if !ok || !read || announce == nil {
		s.Waits = []string{"the leader has no announce of it"}
		return s
	}
	m.proveBeat(&s, announce, now)
	m.proveExports(&s, announce)
	s.Rests = []string{m.fingerprint()}
	return finish(s)
}

// unknowns are findings about what could not be read; what was read decides the
// step itself.
func unknowns(findings []rule.Finding) []rule.Finding {
	return slices.DeleteFunc(findings, func(f rule.Finding) bool { return !f.Unknown })
}

// fingerprint changes with everything that makes an earlier proof worthless.
func (m *member) fingerprint() string {
	parts := []string{m.credential.Namespace, m.credential.Account, m.credential.Secret}
	if held, ok := m.secret(m.credential.Secret); ok {
		parts = append(parts, held.Credential)
	}
	for _, at := range []time.Time{m.credential.Written, m.credential.Directed} {
		parts = append(parts, at.UTC().Format(time.RFC3339))
	}
	for _, c := range m.controllers() {
		for _, at := range c.Started {
			parts = append(parts, at.UTC().Format(time.RFC3339))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// proveBeat compares the heartbeat with baselines of the journal: one from when
// the present state of the member was first seen and, for a member that does not
// say what it uses, one from 40 s later.
func (m *member) proveBeat(s *rollout.Step, announce *v1alpha1.MemberClusterAnnounce, now time.Time) {
	touch, told := announce.Annotations[v1alpha1.AnnotationTouch], announce.Annotations[v1alpha1.AnnotationCredential]
	base := m.o.Journal[m.id("base")]
	mark, seen, _ := strings.Cut(base.Value, "|")
	if mark != m.fingerprint() {
		s.Record = []rollout.Entry{entry(m.id("base"), m.fingerprint()+"|"+touch), entry(m.id("late"), "")}
		s.Waits = append(s.Waits, "its next heartbeat")
		return
	}
	held, _ := m.secret(m.credential.Secret)
	switch {
	case told != "" && told != held.Credential:
		s.Waits = append(s.Waits, "its heartbeat still uses another credential")
	case told == "" || m.upstream(): // whose processes are known, and young (UPG-CHK-6)
		m.proveSilent(s, touch, now.Sub(base.At))
	case touch == seen:
		s.Waits = append(s.Waits, "its next heartbeat")
	}
}

func (m *member) proveSilent(s *rollout.Step, touch string, since time.Duration) {
	late := m.o.Journal[m.id("late")]
	switch {
	case late.Value != "" && late.Value != touch: // it goes on beating
	case late.Value != "":
		s.Waits = append(s.Waits, "a heartbeat that is more than 40 s younger than its last change")
	case since >= clusterset.StandsAfter && touch != "":
		s.Record = []rollout.Entry{entry(m.id("late"), touch)}
		s.Waits = append(s.Waits, "one heartbeat more")
	default:
		s.Waits = append(s.Waits, "40 s of heartbeats")
	}
}

// proveExports: what the member exports is in the common area, under its ID.
func (m *member) proveExports(s *rollout.Step, announce *v1alpha1.MemberClusterAnnounce) {
	if announce.Annotations[v1alpha1.AnnotationPeer] != "" && announce.Annotations[v1alpha1.AnnotationPublished] == "" {
		s.Waits = append(s.Waits, "the member to find all its exports in the common area")
	}
	exports, ok := m.o.Evidence.Leader.Exports.Get()
	exported, okX := m.Exported.Get()
	if !ok || !okX {
		s.Findings = append(s.Findings, unread("UPG-CHK-26", m.ID, "what it exports", m.o.Evidence.Leader.Exports.Problem()+m.Exported.Problem()))
		return
	}
	for _, x := range exported {
		there := slices.ContainsFunc(exports, func(e v1alpha1.ResourceExport) bool {
			return e.Spec.ClusterID == m.ID && e.Spec.Kind == v1alpha1.KindService && e.Spec.Namespace == x.Namespace && e.Spec.Name == x.Name
		})
		if x.Valid && !there {
			s.Waits = append(s.Waits, fmt.Sprintf("export %s to be in the common area under its ID", x.NamespacedName))
		}
	}
}
