package scenario_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

const conflict = mcsv1beta1.ServiceExportConditionConflict

var other = []corev1.ServicePort{{Name: "other", Protocol: corev1.ProtocolTCP, Port: 81}}

// offered waits until the merged Endpoints of the wire have these addresses, in
// any order; none means that there is no such import.
func (a assembly) offered(t *testing.T, what, ns, name string, addresses ...string) fleet.Wire {
	t.Helper()
	return a.AwaitWire(t, what, ns, name, func(w fleet.Wire) error {
		var got []string
		if w.EndpointsImport != nil {
			for _, subset := range w.EndpointsImport.Spec.Endpoints.Subsets {
				for _, address := range subset.Addresses {
					got = append(got, address.IP)
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, addresses) {
			return fmt.Errorf("the merged Endpoints have %v, want %v", got, addresses)
		}
		return nil
	})
}

func (a assembly) delete(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := a.Leader.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// T-I-7, T-I-8: exports of several members come, change and go; kinds that this
// loop does not know are left alone.
func TestLDR_RE_1_EveryChangeIsMerged(t *testing.T) {
	a, ns := together(t)
	unknown := a.harbor.Service(ns, "unknown", ports...)
	unknown.Spec.Kind, unknown.Name = "Raw", "harbor-"+ns+"-raw"
	a.Leader.Make(t, unknown)
	t.Cleanup(func() { a.Leader.Discard(t, unknown) })

	a.harbor.Export(t, ns, "web", ports, "10.60.20.1")
	a.offered(t, "one member", ns, "web", "10.60.20.1")
	a.harbor.Export(t, ns, "web", ports, "10.60.20.1", "10.60.20.2")
	a.offered(t, "its endpoints change", ns, "web", "10.60.20.1", "10.60.20.2")
	service := a.east.Service(t, ns, "web", ports, "10.50.20.1")
	a.east.Export(t, ns, "web")
	merged := a.offered(t, "a second member", ns, "web", "10.60.20.1", "10.60.20.2", service.Spec.ClusterIP)
	a.harbor.Unexport(t, ns, "web")
	left := a.offered(t, "the first leaves", ns, "web", service.Spec.ClusterIP)
	if diff := cmp.Diff(merged.Import.Spec.ServiceImport.Spec, left.Import.Spec.ServiceImport.Spec); diff != "" {
		t.Errorf("the Service import changed:\n%s", diff)
	}
	if err := a.Leader.Get(t.Context(), client.ObjectKeyFromObject(unknown), unknown); err != nil || len(unknown.Status.Conditions) > 0 {
		t.Errorf("the export of an unknown kind: %v, %+v", err, unknown.Status)
	}
}

// Of one cluster and tuple one export counts, and none that is being deleted.
func TestLDR_RE_2_Siblings(t *testing.T) {
	a, ns := together(t)
	a.harbor.Export(t, ns, "web", ports, "10.60.21.1")
	twin := a.harbor.Endpoints(ns, "web", ports, "10.60.21.2")
	twin.Name = "z-" + twin.Name
	a.Leader.Make(t, twin)
	t.Cleanup(func() { a.Leader.Discard(t, twin) })
	a.offered(t, "the export whose name sorts first counts", ns, "web", "10.60.21.1")
	fleet.Eventually(t, "the other is told", func() error {
		return errors.Join(a.Leader.Get(t.Context(), client.ObjectKeyFromObject(twin), twin), fleet.Refused(twin))
	})

	anonymous := a.harbor.Service(ns, "web", ports...)
	anonymous.Name, anonymous.Spec.ClusterID = "anonymous-"+ns, ""
	a.Leader.Make(t, anonymous)
	t.Cleanup(func() { a.Leader.Discard(t, anonymous) })
	fleet.Eventually(t, "an export of nobody is refused", func() error {
		return errors.Join(a.Leader.Get(t.Context(), client.ObjectKeyFromObject(anonymous), anonymous), fleet.Refused(anonymous))
	})

	leaving := a.harbor.Endpoints(ns, "web", ports)
	a.Leader.Change(t, leaving, func() { leaving.Finalizers = append(leaving.Finalizers, "example.org/kept") })
	t.Cleanup(func() { a.Leader.Discard(t, leaving) })
	a.delete(t, leaving) // somebody else's finalizer keeps it
	a.offered(t, "one being deleted does not count, its twin takes its place", ns, "web", "10.60.21.2")
}

// An import of another tuple under the computed name is neither overwritten nor
// deleted; the export is refused, and merged as soon as the name is free.
func TestLDR_RE_3_ImportOfAnotherTuple(t *testing.T) {
	a, ns := together(t)
	foreign := &v1alpha1.ResourceImport{
		ObjectMeta: metav1.ObjectMeta{Name: ns + "-web-service", Namespace: a.Area},
		Spec:       v1alpha1.ResourceImportSpec{Kind: v1alpha1.KindServiceImport, Namespace: "elsewhere", Name: "web"},
	}
	a.Leader.Make(t, foreign)
	a.harbor.Export(t, ns, "web", ports, "10.60.22.1")
	a.AwaitWire(t, "both exports are refused", ns, "web", func(w fleet.Wire) error {
		return errors.Join(fleet.Refused(w.Services["harbor"]), fleet.Refused(w.Endpoints["harbor"]))
	})
	version := foreign.ResourceVersion
	a.harbor.Unexport(t, ns, "web")
	a.AwaitWire(t, "the refused exports go", ns, "web", nothing("harbor"))
	if err := a.Leader.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil || foreign.ResourceVersion != version {
		t.Fatalf("the import was written to: %v, version %s, then %s", err, version, foreign.ResourceVersion)
	}

	a.harbor.Export(t, ns, "web", ports, "10.60.22.1")
	a.AwaitWire(t, "they are refused again", ns, "web", func(w fleet.Wire) error { return fleet.Refused(w.Services["harbor"]) })
	a.delete(t, foreign)
	a.AwaitWire(t, "the name is free", ns, "web", func(w fleet.Wire) error {
		return errors.Join(fleet.Merged(w.Services["harbor"]), fleet.Merged(w.Endpoints["harbor"]))
	})
}

func TestLDR_RE_4_ExportWithoutPayload(t *testing.T) {
	a, ns := together(t)
	service, endpoints := a.harbor.Service(ns, "web", ports...), a.harbor.Endpoints(ns, "web", ports, "10.60.23.1")
	service.Spec.Service, endpoints.Spec.Endpoints = nil, nil
	a.Leader.Make(t, service)
	a.Leader.Make(t, endpoints)
	a.AwaitWire(t, "both are refused", ns, "web", func(w fleet.Wire) error {
		if w.Import != nil || w.EndpointsImport != nil {
			return errors.New("there is an import")
		}
		return errors.Join(fleet.Refused(w.Services["harbor"]), fleet.Refused(w.Endpoints["harbor"]))
	})
	a.harbor.Export(t, ns, "web", ports, "10.60.23.1")
	a.offered(t, "a payload heals them", ns, "web", "10.60.23.1")
	a.AwaitWire(t, "they are merged", ns, "web", everything("harbor"))

	// A bad write of the only export takes the Service away from nobody.
	a.Leader.Change(t, service, func() { service.Spec.Service = nil })
	a.AwaitWire(t, "it is refused, the import stays", ns, "web", func(w fleet.Wire) error {
		if w.Import == nil || len(w.Import.Spec.ServiceImport.Spec.Ports) != 1 {
			return fmt.Errorf("the import is %v", w.Import)
		}
		return fleet.Refused(w.Services["harbor"])
	})
}

// An import as upstream would write it, with the rest of KEP-1645 in fields that
// upstream ignores. Where upstream refuses the second definition, ports unite.
func TestLDR_RE_5_ServiceMerge(t *testing.T) {
	a, ns := together(t)
	a.harbor.Export(t, ns, "web", ports, "10.60.24.1")
	seen := a.AwaitWire(t, "one export", ns, "web", everything("harbor"))
	if s := seen.Import.Spec; seen.Import.Name != ns+"-web-service" || s.Kind != "ServiceImport" || s.Namespace != ns || s.Name != "web" || len(s.ClusterIDs) > 0 {
		t.Errorf("import %q is %+v", seen.Import.Name, s)
	}
	if s := seen.Import.Spec.ServiceImport.Spec; s.Type != mcsv1beta1.ClusterSetIP {
		t.Errorf("its type is %q", s.Type)
	}
	http := mcsv1beta1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
	if diff := cmp.Diff([]mcsv1beta1.ServicePort{http}, seen.Import.Spec.ServiceImport.Spec.Ports); diff != "" {
		t.Errorf("its ports:\n%s", diff)
	}

	a.harbor.Export(t, ns, "web", other, "10.60.24.1")
	a.AwaitWire(t, "the only exporter changes its ports", ns, "web", func(w fleet.Wire) error {
		if p := w.Import.Spec.ServiceImport.Spec.Ports; len(p) != 1 || p[0].Port != 81 {
			return fmt.Errorf("ports are %+v", p)
		}
		return nil
	})
	a.east.Service(t, ns, "web", ports, "10.50.24.1")
	a.east.Export(t, ns, "web")
	a.east.AwaitExport(t, ns, "web", conflict, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonPortConflict)
	a.AwaitWire(t, "the ports of both, the oldest first", ns, "web", func(w fleet.Wire) error {
		if p := w.Import.Spec.ServiceImport.Spec.Ports; len(p) != 2 || p[0].Name != "other" || p[1].Name != "http" {
			return fmt.Errorf("ports are %+v", p)
		}
		return errors.Join(fleet.Merged(w.Services["harbor"]), fleet.Merged(w.Services["east"]))
	})
	a.harbor.Unexport(t, ns, "web")
	a.AwaitWire(t, "the winner leaves", ns, "web", func(w fleet.Wire) error {
		if diff := cmp.Diff([]mcsv1beta1.ServicePort{http}, w.Import.Spec.ServiceImport.Spec.Ports); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// Endpoints count when the Service export of their cluster is merged.
func TestLDR_RE_6_EndpointsMerge(t *testing.T) {
	a, ns := together(t)
	early := a.harbor.Endpoints(ns, "web", ports, "10.60.25.1")
	a.Leader.Make(t, early)
	a.AwaitWire(t, "endpoints before their Service", ns, "web", func(w fleet.Wire) error {
		if w.EndpointsImport != nil {
			return errors.New("there is an import")
		}
		return fleet.Refused(w.Endpoints["harbor"])
	})
	a.harbor.Export(t, ns, "web", ports, "10.60.25.1")
	a.west.Service(t, ns, "web", ports, "10.50.25.1", "10.50.25.2")
	a.west.Export(t, ns, "web")
	seen := a.offered(t, "the subsets of all", ns, "web", "10.50.25.1", "10.50.25.2", "10.60.25.1")
	if s := seen.EndpointsImport.Spec; seen.EndpointsImport.Name != ns+"-web-endpoints" || s.Kind != "Endpoints" || s.Namespace != ns || s.Name != "web" || len(s.Endpoints.Subsets) != 2 {
		t.Errorf("import %q is %+v", seen.EndpointsImport.Name, s)
	}
	// Between own peers the same travels as slices, and the leader makes those
	// of the upstream member.
	a.east.AwaitImport(t, ns, "web", map[string][]string{"harbor": {"10.60.25.1"}, "west": {"10.50.25.1", "10.50.25.2"}})
}

// A status is written when it changes, and not otherwise.
func TestLDR_RE_8_Status(t *testing.T) {
	a, ns := together(t)
	a.harbor.Export(t, ns, "web", ports, "10.60.26.1")
	before := a.AwaitWire(t, "Succeeded", ns, "web", func(w fleet.Wire) error {
		if err := everything("harbor")(w); err != nil {
			return err
		}
		// The wire has one element, with empty reason.
		if c := w.Services["harbor"].Status.Conditions; len(c) != 1 || c[0].Reason != "" {
			return fmt.Errorf("conditions are %+v", c)
		}
		return nil
	})
	a.harbor.Export(t, ns, "web", ports, "10.60.26.1", "10.60.26.2")
	after := a.offered(t, "a change that succeeds as before", ns, "web", "10.60.26.1", "10.60.26.2")
	if diff := cmp.Diff(before.Endpoints["harbor"].Status, after.Endpoints["harbor"].Status); diff != "" {
		t.Errorf("the status of the Endpoints export:\n%s", diff)
	}
	if was, is := before.Services["harbor"].Status, after.Services["harbor"].Status; cmp.Diff(was, is) != "" {
		t.Errorf("the status of the Service export:\n%s", cmp.Diff(was, is))
	}
	// Somebody writes nonsense into it (WK-7): the truth is put back.
	export := after.Services["harbor"]
	export.Status.Conditions = []v1alpha1.ResourceCondition{{Type: v1alpha1.ResourceFailure, Status: corev1.ConditionFalse, Reason: "Nonsense"}}
	if err := a.Leader.Status().Update(t.Context(), export); err != nil {
		t.Fatal(err)
	}
	a.AwaitWire(t, "the truth", ns, "web", everything("harbor"))
}

// T-I-9: with the last export the imports go; either spelling of the finalizer
// lets the leader see to that, and both are taken off.
func TestLDR_RE_9_Deletion(t *testing.T) {
	a, ns := together(t)
	for i, finalizer := range []string{v1alpha1.FinalizerExport, v1alpha1.FinalizerExportLegacy} {
		name := fmt.Sprintf("web%d", i)
		a.harbor.Export(t, ns, name, ports, "10.60.27.1")
		for _, export := range []*v1alpha1.ResourceExport{a.harbor.Service(ns, name), a.harbor.Endpoints(ns, name, nil)} {
			a.Leader.Change(t, export, func() { export.Finalizers = []string{finalizer} })
		}
		service := a.east.Service(t, ns, name, ports, "10.50.27.1")
		a.east.Export(t, ns, name)
		a.offered(t, "two exports", ns, name, "10.60.27.1", service.Spec.ClusterIP)

		a.harbor.Unexport(t, ns, name)
		a.AwaitWire(t, "the exports go", ns, name, nothing("harbor"))
		kept := a.offered(t, "one remains", ns, name, service.Spec.ClusterIP)
		if kept.Import == nil {
			t.Fatal("the Service import is gone while a sibling remains")
		}
		a.east.Unexport(t, ns, name)
		deleted := time.Now()
		a.AwaitWire(t, "the imports go with the last", ns, name, func(w fleet.Wire) error {
			if w.Import != nil || w.EndpointsImport != nil {
				return fmt.Errorf("there are %v and %v", w.Import, w.EndpointsImport)
			}
			return nothing("east")(w)
		})
		t.Logf("the imports went %d ms after the last ServiceExport", time.Since(deleted).Milliseconds())
	}
}

// A member's announce being deleted, by whomever, withdraws all that the member
// exported, and nothing of others. What counts is the field, not the name.
func TestLDR_GC_2_LeavingMember(t *testing.T) {
	a, ns := together(t)
	quay := a.Upstream(t, "quay")
	fleet.Eventually(t, "the leader has put its finalizer", func() error {
		announce, err := a.Announce(t, "quay")
		if err != nil || !slices.Contains(announce.Finalizers, "memberclusterannounce.finalizer.antrea.io/quay") {
			return fmt.Errorf("finalizers %v, %w", announce.Finalizers, err)
		}
		return nil
	})
	// Its announce carries a name that is not made of its ID, and the finalizer of
	// a leader that did not mind.
	misnamed, err := a.Announce(t, "quay")
	if err != nil {
		t.Fatal(err)
	}
	a.Leader.Discard(t, misnamed.DeepCopy())
	misnamed.ObjectMeta = metav1.ObjectMeta{Name: "member-announce-from-quay-of-old", Namespace: a.Area, Finalizers: misnamed.Finalizers}
	a.Leader.Make(t, misnamed)
	t.Cleanup(func() { a.Leader.Discard(t, misnamed) })

	for _, name := range []string{"web", "cart"} {
		quay.Export(t, ns, name, ports, "10.61.0.1")
		a.AwaitWire(t, "quay exports", ns, name, everything("quay"))
	}
	a.harbor.Export(t, ns, "web", ports, "10.60.28.1")
	admin := &v1alpha1.ResourceExport{
		ObjectMeta: metav1.ObjectMeta{Name: "policy-" + ns, Namespace: a.Area, Finalizers: []string{v1alpha1.FinalizerExport}},
		Spec:       v1alpha1.ResourceExportSpec{Name: "isolation", Kind: v1alpha1.KindAntreaClusterNetworkPolicy},
	}
	a.Leader.Make(t, admin)
	t.Cleanup(func() { a.Leader.Discard(t, admin) })
	a.AwaitWire(t, "harbor exports", ns, "web", everything("harbor"))

	a.delete(t, misnamed)
	fleet.Eventually(t, "the announce goes", func() error {
		if err := a.Leader.Get(t.Context(), client.ObjectKeyFromObject(misnamed), misnamed); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it gives %w", err)
		}
		return nil
	})
	for _, name := range []string{"web", "cart"} {
		a.AwaitWire(t, "its exports go", ns, name, nothing("quay"))
	}
	a.AwaitWire(t, "those of another stay", ns, "web", everything("harbor"))
	if err := a.Leader.Get(t.Context(), client.ObjectKeyFromObject(admin), admin); err != nil || !admin.DeletionTimestamp.IsZero() {
		t.Errorf("an administrator's export: %v, deleted at %v", err, admin.DeletionTimestamp)
	}
}

// Any announce of the ClusterSet is answered by the leader's finalizer, which is
// put back when somebody takes it off; an own member also gets the leader's
// stamp. Announces of another ClusterSet are nobody's business.
func TestLDR_MS_1_AnnouncesAreAnswered(t *testing.T) {
	t.Parallel()
	a := standing.Get(t, clusters.Lab(t))
	finalizer := "memberclusterannounce.finalizer.antrea.io/"
	answered := func(id string, stamped bool) {
		t.Helper()
		fleet.Eventually(t, id+" is answered", func() error {
			announce, err := a.Announce(t, id)
			if err != nil {
				return err
			}
			if !slices.Contains(announce.Finalizers, finalizer+id) || (announce.Annotations[v1alpha1.AnnotationLeader] != "") != stamped {
				return fmt.Errorf("finalizers %v, annotations %v", announce.Finalizers, announce.Annotations)
			}
			return nil
		})
	}
	answered("east", true)
	quay := a.Upstream(t, "quay-ms1")
	answered(quay.ID, false)
	announce, err := a.Announce(t, quay.ID)
	if err != nil {
		t.Fatal(err)
	}
	a.Leader.Change(t, announce, func() { announce.Finalizers = nil })
	answered(quay.ID, false)
	status := func() error {
		set, err := a.Leader.ReadSet(t)
		if err != nil {
			return err
		}
		for _, s := range set.Status.ClusterStatuses {
			if s.ClusterID == quay.ID && s.Conditions[0].Reason == "Connected" {
				return nil
			}
		}
		return fmt.Errorf("the status is %+v", set.Status)
	}
	quay.Beat(t)
	fleet.Eventually(t, "a sign of life makes it ready", status)

	strange := &v1alpha1.MemberClusterAnnounce{
		ObjectMeta: metav1.ObjectMeta{Name: "member-announce-from-stranger", Namespace: a.Area},
		ClusterID:  "stranger", ClusterSetID: "another-set", LeaderClusterID: "leader",
	}
	a.Leader.Make(t, strange)
	t.Cleanup(func() { a.Leader.Discard(t, strange) })
	fleet.Steadily(t, 500*time.Millisecond, "that of another set is not", func() error {
		now, err := a.Announce(t, "stranger")
		if err != nil || len(now.Finalizers) > 0 {
			return fmt.Errorf("finalizers %v, %w", now.Finalizers, err)
		}
		return nil
	})
}

// No traffic goes to endpoints of a cluster whose Service was refused, nor to a
// port that lost a conflict.
func TestWK_19_EndpointsOfARefusedExporter(t *testing.T) {
	a, ns := together(t)
	service := a.east.Service(t, ns, "web", ports, "10.50.29.1")
	a.east.Export(t, ns, "web")
	a.AwaitWire(t, "the first", ns, "web", everything("east"))

	refused := a.harbor.Service(ns, "web", corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 0})
	a.Leader.Make(t, refused)
	a.Leader.Make(t, a.harbor.Endpoints(ns, "web", ports, "10.60.29.1"))
	a.AwaitWire(t, "the second is refused, with its endpoints", ns, "web", func(w fleet.Wire) error {
		return errors.Join(fleet.Refused(w.Services["harbor"]), fleet.Refused(w.Endpoints["harbor"]))
	})
	a.offered(t, "on the wire", ns, "web", service.Spec.ClusterIP)
	a.west.AwaitImport(t, ns, "web", map[string][]string{"east": {service.Spec.ClusterIP}})

	// Now it can be merged, but its http is another port than the older one's.
	a.harbor.Export(t, ns, "web", []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 8080}, other[0]}, "10.60.29.1")
	a.west.AwaitImport(t, ns, "web", map[string][]string{"east": {service.Spec.ClusterIP}, "harbor": {"10.60.29.1"}})
	fleet.Eventually(t, "of harbor only the port that did not lose is served", func() error {
		seen, err := a.west.Import(t, ns, "web")
		if err != nil {
			return err
		}
		for _, slice := range seen.Slices {
			if slice.Labels[mcsv1beta1.LabelSourceCluster] == "harbor" && (len(slice.Ports) != 1 || *slice.Ports[0].Name != "other") {
				return fmt.Errorf("slice %q has ports %+v", slice.Name, slice.Ports)
			}
		}
		return nil
	})
}

// Upstream needs up to 17 minutes.
func TestWK_22_ResolvedConflictHealsAtOnce(t *testing.T) {
	a, ns := together(t)
	a.east.Service(t, ns, "web", ports, "10.50.30.1")
	a.east.Export(t, ns, "web")
	a.east.AwaitExport(t, ns, "web", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	service := a.west.Service(t, ns, "web", other, "10.50.30.2")
	a.west.Export(t, ns, "web")
	for _, m := range []*fleet.Controller{a.east, a.west} {
		m.AwaitExport(t, ns, "web", conflict, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonPortConflict)
	}
	resolved := time.Now()
	a.west.Change(t, service, func() { service.Spec.Ports = ports })
	a.west.Endpoints(t, ns, "web", ports, "10.50.30.2")
	for _, m := range []*fleet.Controller{a.east, a.west} {
		fleet.Within(t, 30*time.Second, "no conflict is left at "+m.Name, func() error {
			export := &mcsv1beta1.ServiceExport{}
			if err := m.Get(t.Context(), key(ns, "web"), export); err != nil {
				return err
			}
			for _, c := range export.Status.Conditions {
				if c.Type == string(conflict) && c.Status == metav1.ConditionFalse {
					return nil
				}
			}
			return fmt.Errorf("conditions are %+v", export.Status.Conditions)
		})
	}
	t.Logf("the conflict was gone %d ms after it was resolved", time.Since(resolved).Milliseconds())
}
