package scenario_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/lab/relay"
	"github.com/lockstep-dev/lockstep/internal/leader"
	"github.com/lockstep-dev/lockstep/internal/member"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/policy"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// An administrator exports a policy. A member makes it as soon as it can, says
// what is in the way until then, and loses it with the export, whether or not it
// was there to see. Services do not care.
//
// covers: LDR-RE-7, LDR-RE-8, LDR-RE-9, MEM-NP-1, MEM-NP-2, MEM-CS-5, WK-14, WK-15, WK-20, WK-21, WK-23, WK-24, WK-25
func TestPoliciesReachTheMembers(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east := f.Member(t, "east", func(o *member.Options) { o.Mode = v1alpha1.EndpointIPTypePodIP })
	west := f.Member(t, "west")
	east.Antrea(t)
	f.ExportPolicy(t, "web-export", "web", "gold", 5)
	f.AwaitMemberSays(t, "east", "web", "TierMissing")
	f.AwaitMemberSays(t, "west", "web", "PolicyKindMissing")
	f.AwaitExportSays(t, "web-export", "Imported", "False", "NotImported")
	awaitWireEvent(t, f, "web-antreaclusternetworkpolicy", `member "east": Tier "gold" does not exist`)

	ns := namespaceOf(t, east.Cluster, west.Cluster)
	east.Service(t, ns, "cart", ports, "10.0.0.1")
	east.Export(t, ns, "cart")
	west.AwaitImport(t, ns, "cart", map[string][]string{"east": {"10.0.0.1"}})

	east.Tier(t, "gold")
	imported := east.AwaitPolicy(t, "antrea-mc-web", 5)
	spec, _, _ := unstructured.NestedMap(imported.Object, "spec")
	want := map[string]any{
		"tier": "gold", "priority": int64(5), "appliedTo": []any{map[string]any{"namespaceSelector": map[string]any{}}},
		"ingress": []any{map[string]any{"action": "Drop", "from": []any{map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": "x"}}}}}},
	}
	if diff := cmp.Diff(want, spec); diff != "" || imported.GetAnnotations()["multicluster.antrea.io/imported-acnp"] != "true" {
		t.Errorf("the policy has annotations %v and spec: %s", imported.GetAnnotations(), diff)
	}
	kinds := west.Antrea(t, "gold") // later than the member
	west.AwaitPolicy(t, "antrea-mc-web", 5)
	west.Discard(t, kinds[0]) // and they may go again
	f.AwaitMemberSays(t, "west", "web", "PolicyKindMissing")
	east.Export(t, ns, "till")
	east.Service(t, ns, "till", ports, "10.0.0.2")
	west.AwaitImport(t, ns, "till", map[string][]string{"east": {"10.0.0.2"}})
	west.Antrea(t, "gold")
	west.AwaitPolicy(t, "antrea-mc-web", 5)
	f.AwaitExportSays(t, "web-export", "Imported", "True", "Imported")

	both := []*fleet.Controller{east, west}
	still(t, f, both, "when the controllers start again", func() { restart(t, f, both) })
	conflictsAreShown(t, f, east)
	foreignPoliciesStay(t, f, east)

	offer := named(&v1alpha1.ResourceImport{}, f.Area, "web-antreaclusternetworkpolicy")
	f.Leader.Change(t, offer, func() { offer.Spec.ClusterIDs = []string{"east"} })
	west.AwaitPolicy(t, "antrea-mc-web", 0)
	f.AwaitMemberSays(t, "west", "web", "")

	east.Stop(t)
	f.Leader.Stop(t)
	if err := f.Leader.Delete(t.Context(), named(&v1alpha1.ResourceExport{}, f.Area, "web-export")); err != nil {
		t.Fatal(err)
	}
	f.Leader.Start(t)
	gone(t, f.Leader, "the import", offer)
	east.Start(t)
	east.AwaitPolicy(t, "antrea-mc-web", 0)

	f.ExportPolicy(t, "web-export", "web", "", 7)
	west.AwaitPolicy(t, "antrea-mc-web", 7)
	west.Leave(t)
	west.AwaitPolicy(t, "antrea-mc-web", 0)
}

// awaitWireEvent waits for an Event on an import that a member made (MEM-NP-2).
func awaitWireEvent(t *testing.T, f *fleet.Fleet, on, message string) {
	t.Helper()
	fleet.Eventually(t, "an Event on "+on, func() error {
		var events corev1.EventList
		if err := f.Leader.List(t.Context(), &events, client.InNamespace(f.Area)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "ACNPImportFailed" && e.InvolvedObject.Name == on && e.InvolvedObject.UID != "" && e.Type == "Warning" && len(e.Message) >= len(message) && e.Message[:len(message)] == message {
				return nil
			}
		}
		return fmt.Errorf("there are %d Events, and none is it", len(events.Items))
	})
}

// conflictsAreShown exports the policy a second time, saying something else (WK-21,
// WK-15).
func conflictsAreShown(t *testing.T, f *fleet.Fleet, east *fleet.Controller) {
	t.Helper()
	second := f.ExportPolicy(t, "web-export-2", "web", "gold", 6)
	f.AwaitExportSays(t, "web-export-2", "Conflict", "True", "PolicyConflict")
	f.AwaitExportSays(t, "web-export-2", "Failure", "False", "ConvergeFailure")
	f.AwaitExportSays(t, "web-export", "Succeeded", "True", "")
	east.AwaitPolicy(t, "antrea-mc-web", 5)
	if err := f.Leader.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	gone(t, f.Leader, "the second export", second)
	east.AwaitPolicy(t, "antrea-mc-web", 5)
}

// foreignPoliciesStay has a user's policy in the way (WK-25).
func foreignPoliciesStay(t *testing.T, f *fleet.Fleet, east *fleet.Controller) {
	t.Helper()
	users := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"priority": int64(99)}}}
	users.SetGroupVersionKind(policy.Kind)
	users.SetName("antrea-mc-db")
	east.Make(t, users)
	f.ExportPolicy(t, "db-export", "db", "", 1)
	f.AwaitMemberSays(t, "east", "db", "NameTaken")
	if found := east.AwaitPolicy(t, "antrea-mc-db", 99); found.GetResourceVersion() != users.GetResourceVersion() {
		t.Error("the policy of a user was written")
	}
	if err := east.Delete(t.Context(), users); err != nil {
		t.Fatal(err)
	}
	east.AwaitPolicy(t, "antrea-mc-db", 1)
	if err := f.Leader.Delete(t.Context(), named(&v1alpha1.ResourceExport{}, f.Area, "db-export")); err != nil {
		t.Fatal(err)
	}
	east.AwaitPolicy(t, "antrea-mc-db", 0)
}

// numbers are the label identities of a cluster: which label has which.
func numbers(t *testing.T, c *fleet.Cluster) (map[string]uint32, error) {
	t.Helper()
	var list v1alpha1.LabelIdentityList
	if err := c.List(t.Context(), &list); err != nil {
		return nil, err
	}
	found := map[string]uint32{}
	for _, i := range list.Items {
		found[i.Spec.Label] = i.Spec.ID
	}
	return found, nil
}

// awaitNumbers waits until all those clusters agree on the numbers of labels, which
// have to be there or have to be gone.
func awaitNumbers(t *testing.T, in []*fleet.Controller, there, gone []string) (agreed map[string]uint32) {
	t.Helper()
	fleet.Eventually(t, "label identities", func() error {
		agreed = map[string]uint32{}
		for _, c := range in {
			found, err := numbers(t, c.Cluster)
			if err != nil {
				return err
			}
			for _, label := range there {
				if found[label] == 0 || agreed[label] != 0 && agreed[label] != found[label] {
					return fmt.Errorf("%s has number %d for %q, another cluster %d", c.Name, found[label], label, agreed[label])
				}
				agreed[label] = found[label]
			}
			for _, label := range gone {
				if found[label] != 0 {
					return fmt.Errorf("%s has %q still", c.Name, label)
				}
			}
		}
		return nil
	})
	meaning := map[uint32]string{}
	for label, id := range agreed {
		if other, taken := meaning[id]; taken {
			t.Errorf("%d means %q and %q", id, label, other)
		}
		meaning[id] = label
	}
	return agreed
}

// Sets of labels get numbers that are the same everywhere, outlive a leader, and
// are not given away; turned off, all is taken back.
//
// covers: MEM-LI-1, MEM-LI-2, MEM-LI-3, LDR-LI-1, LDR-LI-2, LDR-LI-3, WK-12, WK-13
func TestLabelIdentities(t *testing.T) {
	f := fleet.Found(t, clusters.Lab(t), nameOf(t), func(o *leader.Options) { o.Labels = true })
	f.Leader.Start(t)
	on := func(o *member.Options) { o.Labels = true }
	east, west := f.Member(t, "east", on), f.Member(t, "west", on)
	both := []*fleet.Controller{east, west}
	ns := namespaceOf(t, east.Cluster, west.Cluster)
	of := func(app string) string {
		return identity.NormalizedLabel(map[string]string{"kubernetes.io/metadata.name": ns}, map[string]string{"app": app})
	}
	east.Label(t, ns, "cart", map[string]string{"app": "cart"})
	west.Label(t, ns, "cart", map[string]string{"app": "cart"})
	web := west.Label(t, ns, "web", map[string]string{"app": "web"})
	before := awaitNumbers(t, both, []string{of("cart"), of("web")}, nil)
	spec, export := specOf(t, f.Leader.Cluster, "ResourceExport", f.Area, "west-"+identity.LabelHash(of("web")))
	want := map[string]any{"clusterID": "west", "kind": "LabelIdentity", "labelIdentity": map[string]any{"normalizedLabel": of("web")}}
	if diff := cmp.Diff(want, spec); diff != "" || len(export.GetFinalizers()) > 0 {
		t.Errorf("the export has finalizers %v and spec: %s", export.GetFinalizers(), diff)
	}
	still(t, f, both, "when the controllers start again", func() { restart(t, f, both) })

	f.Leader.Stop(t) // what goes and comes while it is away must not change places
	if err := west.Delete(t.Context(), web, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	gone(t, f.Leader, "the export of web", named(&v1alpha1.ResourceExport{}, f.Area, "west-"+identity.LabelHash(of("web"))))
	east.Label(t, ns, "db", map[string]string{"app": "db"})
	f.Leader.Start(t)
	after := awaitNumbers(t, both, []string{of("cart"), of("db")}, []string{of("web")})
	if after[of("cart")] != before[of("cart")] || after[of("db")] == before[of("web")] {
		t.Errorf("the numbers were %v and are %v", before, after)
	}
	west.Label(t, ns, "web", map[string]string{"app": "web"})
	again := awaitNumbers(t, both, []string{of("cart"), of("db"), of("web")}, nil)
	if again[of("web")] != before[of("web")] {
		t.Errorf("a label that came back had %d and has %d", before[of("web")], again[of("web")])
	}

	west.Stop(t)
	off := f.Candidate(t, "west", "west")
	off.Start(t)
	gone(t, f.Leader, "the export of web", named(&v1alpha1.ResourceExport{}, f.Area, "west-"+identity.LabelHash(of("web"))))
	awaitNumbers(t, []*fleet.Controller{off}, nil, []string{of("cart"), of("db"), of("web")})
}

// A common area that went back to before a policy was exported takes the policy
// from nobody: who exported it does not publish again by himself, so members keep
// it until somebody says that it may go.
func TestPoliciesOutliveALeaderFromABackup(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	west := f.Member(t, "west")
	west.Antrea(t)
	export := f.ExportPolicy(t, "web-export", "web", "", 5)
	west.AwaitPolicy(t, "antrea-mc-web", 5)
	beats(t, f, "west", 2)

	west.Cut(t, relay.Refused)
	f.Leader.Stop(t)
	f.Leader.Discard(t, export)
	f.Leader.Discard(t, named(&v1alpha1.ResourceImport{}, f.Area, "web-antreaclusternetworkpolicy"))
	announce := named(&v1alpha1.MemberClusterAnnounce{}, f.Area, "member-announce-from-west")
	f.Leader.Change(t, announce, func() {
		metav1.SetMetaDataAnnotation(&announce.ObjectMeta, v1alpha1.AnnotationTouch, time.Now().Add(-time.Hour).Format(time.RFC3339))
	})
	f.Leader.Start(t)
	west.Heal(t)
	var memory v1alpha1.LeaderMemory
	holds := func() error {
		set, err := west.ReadSet(t)
		if err != nil {
			return err
		}
		if memory = clusterset.ReadMemory(set.Annotations); memory.HoldSince == nil {
			return errors.New("west does not hold withdrawals")
		}
		return nil
	}
	fleet.Eventually(t, "west holds withdrawals", holds)
	beats(t, f, "west", 5)
	if err := holds(); err != nil {
		t.Error(err)
	}
	west.AwaitPolicy(t, "antrea-mc-web", 5)

	west.ChangeSet(t, func(s *v1alpha2.ClusterSet) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.AnnotationAcceptLeader, clusterset.Acceptance(memory))
	})
	west.AwaitPolicy(t, "antrea-mc-web", 0)
	west.AwaitReady(t)
}
