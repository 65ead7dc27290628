package scenario_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/lab/relay"
	"github.com/lockstep-dev/lockstep/internal/leader"
	"github.com/lockstep-dev/lockstep/internal/member"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// onLoss writes what a ClusterSet says of lost members; "" takes it away.
func onLoss(t *testing.T, c *fleet.Controller, policy v1alpha1.LossPolicy, after string) {
	t.Helper()
	set, err := c.ReadSet(t)
	if err != nil {
		t.Fatal(err)
	}
	c.Change(t, set, func() {
		delete(set.Annotations, v1alpha1.AnnotationOnMemberLoss)
		delete(set.Annotations, v1alpha1.AnnotationOnMemberLossAfter)
		if policy != "" {
			metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1alpha1.AnnotationOnMemberLoss, string(policy))
		}
		if after != "" {
			metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1alpha1.AnnotationOnMemberLossAfter, after)
		}
	})
}

// lost waits until an import has no ready endpoint and so many slices, and its IP.
func lost(t *testing.T, m *fleet.Controller, ns, ip string, slices int) {
	t.Helper()
	fleet.Eventually(t, fmt.Sprintf("%q has nothing ready of it, in %d slices", m.ID, slices), func() error { return isLost(t, m, ns, ip, slices) })
}

func isLost(t *testing.T, m *fleet.Controller, ns, ip string, slices int) error {
	seen, err := m.Import(t, ns, "web")
	switch {
	case err != nil:
		return err
	case seen.Import == nil || seen.Service == nil || seen.Service.Spec.ClusterIP != ip:
		return errors.New("the import or its IP is gone")
	case len(seen.Ready) > 0 || len(seen.Slices) != slices:
		return fmt.Errorf("ready are %v, in %d slices", seen.Ready, len(seen.Slices))
	}
	return nil
}

func offers(t *testing.T, m *fleet.Controller, ns string, want map[string][]string) func() error {
	return func() error {
		seen, err := m.Import(t, ns, "web")
		if err != nil {
			return err
		}
		if fmt.Sprint(seen.Ready) != fmt.Sprint(want) {
			return fmt.Errorf("ready are %v, want %v", seen.Ready, want)
		}
		return nil
	}
}

// What becomes of the endpoints of a member that died is what the ClusterSet
// says; they are all back when the member is, and nobody was started again but the
// one that died.
//
// covers: WK-42, LDR-MS-2, WK-1
func TestWK_42_MemberIsLost(t *testing.T) {
	f, east, west, ns := pair(t)
	address := fromEast(offer(t, east, ns, "web"))
	ip := west.AwaitImport(t, ns, "web", address).Service.Spec.ClusterIP
	gone := func(then string) {
		t.Helper()
		t.Log("east dies; then:", then)
		east.Stop(t)
		awaitStatus(t, f.Leader, "1/2 Ready=False/MembersNotReady; east Ready=False/Disconnected; west Ready=True/Connected")
	}
	back := func() {
		t.Helper()
		east.Start(t)
		awaitStatus(t, f.Leader, "2/2 Ready=True/; east Ready=True/Connected; west Ready=True/Connected")
		west.AwaitImport(t, ns, "web", address)
	}

	gone("nothing is said, so everything stays")
	fleet.Steadily(t, 2*time.Second, "what is imported stays", offers(t, west, ns, address))
	back()

	onLoss(t, f.Leader, v1alpha1.LossWithdraw, "0s")
	gone("endpoints go, the IP stays")
	lost(t, west, ns, ip, 0)
	if seen, err := west.Import(t, ns, "web"); err != nil || len(seen.Import.Status.Clusters) != 1 || seen.Import.Status.Clusters[0].Cluster != "east" {
		t.Errorf("the ServiceImport no longer says who exports: %+v (%v)", seen.Import, err)
	}
	onLoss(t, f.Leader, v1alpha1.LossNotReady, "0s")
	lost(t, west, ns, ip, 1)
	onLoss(t, west, v1alpha1.LossKeep, "") // its own word counts
	west.AwaitImport(t, ns, "web", address)
	onLoss(t, west, "", "")
	lost(t, west, ns, ip, 1)
	back()

	onLoss(t, f.Leader, v1alpha1.LossWithdraw, "1h")
	gone("the time has not come")
	fleet.Steadily(t, 2*time.Second, "what is imported stays", offers(t, west, ns, address))
	onLoss(t, f.Leader, "Explode", "0s")
	awaitStatus(t, f.Leader, "1/2 Ready=False/MembersNotReady; east Ready=False/Disconnected; west Ready=True/Connected")
	fleet.Eventually(t, "a policy that is none is told", func() error {
		set, err := f.Leader.ReadSet(t)
		if err != nil {
			return err
		}
		return mentions(set.Status.Conditions[0].Message, "not connected: east", "Explode", "Withdraw")
	})
	fleet.Steadily(t, 2*time.Second, "it withdraws nothing", offers(t, west, ns, address))
	onLoss(t, f.Leader, "", "")
	back()
}

// A member that cannot see its leader withdraws nothing because of what the
// leader said before; it does so when it sees it again.
//
// covers: WK-42
func TestWK_42_NothingIsWithdrawnInTheDark(t *testing.T) {
	f, east, west, ns := pair(t)
	address := fromEast(offer(t, east, ns, "web"))
	ip := west.AwaitImport(t, ns, "web", address).Service.Spec.ClusterIP
	onLoss(t, f.Leader, v1alpha1.LossKeep, "0s")
	east.Stop(t)
	awaitStatus(t, f.Leader, "1/2 Ready=False/MembersNotReady; east Ready=False/Disconnected; west Ready=True/Connected")
	fleet.Eventually(t, "the members are told", func() error {
		told := named(&v1alpha1.ResourceImport{}, f.Area, v1alpha1.MemberLossImport)
		if err := f.Leader.Get(t.Context(), key(told.Namespace, told.Name), told); err != nil {
			return err
		}
		return mentions(told.Annotations[v1alpha1.AnnotationLost], `"Keep"`, `"east"`)
	})
	west.Cut(t, relay.Silent)
	fleet.Eventually(t, "west knows that it is alone", func() error { return west.CheckCondition(t, "False", "Disconnected") })
	onLoss(t, west, v1alpha1.LossWithdraw, "")
	fleet.Steadily(t, 3*time.Second, "nothing is withdrawn in the dark", offers(t, west, ns, address))
	west.Heal(t)
	lost(t, west, ns, ip, 0)
	east.Start(t)
	west.AwaitImport(t, ns, "web", address)
}

// A member renews its Lease beside the beats. Where it has no right to, as under
// the Role of an older leader, the beats are enough.
//
// covers: LDR-MS-1, LDR-MS-2
func TestLeaseBesideTheHeartbeat(t *testing.T) {
	f, east, _, _ := pair(t)
	lease := named(&coordinationv1.Lease{}, f.Area, identity.LeaseName("east"))
	renewals := func(n int) {
		t.Helper()
		seen := map[string]bool{}
		fleet.Eventually(t, fmt.Sprintf("%d renewals", n), func() error {
			if err := f.Leader.Get(t.Context(), key(lease.Namespace, lease.Name), lease); err != nil {
				return err
			}
			if seen[lease.ResourceVersion] = true; len(seen) < n {
				return fmt.Errorf("%d were seen", len(seen))
			}
			return nil
		})
	}
	renewals(3)
	announce, err := f.Announce(t, "east")
	if err != nil {
		t.Fatal(err)
	}
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder == "" || holder != announce.Annotations[v1alpha1.AnnotationClusterUID] {
		t.Errorf("the Lease is held by %q; the announce is of %q", holder, announce.Annotations[v1alpha1.AnnotationClusterUID])
	}
	role := named(&rbacv1.Role{}, f.Area, v1alpha1.MemberClusterRole)
	withLeases := []rbacv1.PolicyRule{}
	f.Leader.Change(t, role, func() {
		withLeases = role.Rules
		kept := role.Rules[:0:0]
		for _, rule := range role.Rules {
			if rule.Resources[0] != "leases" {
				kept = append(kept, rule)
			}
		}
		role.Rules = kept
	})
	connectedAll := func() error {
		return f.Leader.CheckStatus(t, "2/2 Ready=True/; east Ready=True/Connected; west Ready=True/Connected")
	}
	fleet.Steadily(t, 8*time.Second, "beats alone prove life", connectedAll)
	f.Leader.Change(t, role, func() { role.Rules = withLeases })
	renewals(2)
	east.Stop(t)
	awaitStatus(t, f.Leader, "1/2 Ready=False/MembersNotReady; east Ready=False/Disconnected; west Ready=True/Connected")
	east.Start(t)
	fleet.Eventually(t, "east is back", connectedAll)
}

// cleanUpAfter is a day in these tests; the warning comes after half of it.
const cleanUpAfter = 24 * time.Second

// The credential of a member is deleted and nobody notices: for half a day
// nothing more than its being disconnected is said, then when its exports go, on
// the announce, on the ClusterSet and in Events; an administrator may hold that;
// and at that time, not before, they go. A new credential brings all of it back,
// and no process is started again.
//
// covers: LDR-GC-1, LDR-GC-2, WK-1, WK-37
func TestLDR_GC_1_ForgottenMember(t *testing.T) {
	f := fleet.Found(t, clusters.Lab(t), nameOf(t), func(o *leader.Options) { o.CleanUpAfter = cleanUpAfter })
	f.Leader.Start(t)
	hasty := func(o *member.Options) { o.CleanUpAfter = cleanUpAfter }
	east, west := f.Member(t, "east", hasty), f.Member(t, "west", hasty)
	ns := namespaceOf(t, east.Cluster, west.Cluster)
	address := fromEast(offer(t, east, ns, "web"))
	west.AwaitImport(t, ns, "web", address)

	revoked := named(&rbacv1.RoleBinding{}, f.Area, "member-east")
	if err := f.Leader.Delete(t.Context(), revoked); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, f.Leader, "1/2 Ready=False/MembersNotReady; east Ready=False/Disconnected; west Ready=True/Connected")
	warned := func() (at time.Time) {
		t.Helper()
		awaitStatus(t, f.Leader, "1/2 Ready=False/MembersNotReady; east Ready=False/Disconnected CleanUpPending=True/CleanUpPending; west Ready=True/Connected")
		announce, err := f.Announce(t, "east")
		if err != nil {
			t.Fatal(err)
		}
		if at, err = time.Parse(time.RFC3339, announce.Annotations[v1alpha1.AnnotationCleanUpAt]); err != nil {
			t.Fatalf("when it is cleaned up: %v", err)
		}
		west.AwaitImport(t, ns, "web", address)
		return at
	}
	hold := func(value string) {
		t.Helper()
		announce, err := f.Announce(t, "east")
		if err != nil {
			t.Fatal(err)
		}
		f.Leader.Change(t, announce, func() {
			metav1.SetMetaDataAnnotation(&announce.ObjectMeta, v1alpha1.AnnotationHoldCleanUp, value)
		})
	}
	at := warned()
	for kind, name := range map[string]string{"ClusterSet": f.Name, "MemberClusterAnnounce": identity.AnnounceName("east")} {
		awaitEvent(t, f.Leader.Cluster, f.Area, kind, name, "CleanUpPending", at.UTC().Format(time.RFC3339), v1alpha1.AnnotationHoldCleanUp)
	}
	hold("true")
	awaitStatus(t, f.Leader, "1/2 Ready=False/MembersNotReady; east Ready=False/Disconnected CleanUpPending=True/CleanUpHeld; west Ready=True/Connected")
	fleet.Steadily(t, time.Until(at)+2*time.Second, "what it exports is kept", offers(t, west, ns, address))
	hold("false")
	if again := warned(); !again.After(at) {
		t.Errorf("after the hold it is to be cleaned up at %s, as was said before it", again)
	} else {
		at = again
	}
	west.AwaitNoImport(t, ns, "web")
	if early := time.Until(at); early > 0 {
		t.Errorf("it was cleaned up %s before the time that was said", early)
	}
	awaitStatus(t, f.Leader, "1/1 Ready=True/; west Ready=True/Connected")
	awaitEvent(t, f.Leader.Cluster, f.Area, "ClusterSet", f.Name, "CleanedUp", "east")

	east.Put(t, f.Token(t, east.Cluster, east.Namespace, "leader-token", "east"))
	west.AwaitImport(t, ns, "web", address)
	awaitStatus(t, f.Leader, "2/2 Ready=True/; east Ready=True/Connected; west Ready=True/Connected")
	awaitStatus(t, east, connected)
	east.AwaitExport(t, ns, "web", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
}
