package scenario_test

import (
	"errors"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// Our annotations hold JSON that anybody with write access can spoil. Whatever
// they say, no import is withdrawn, and their owner writes them again.
func TestDamagedMarks(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east, west := f.Member(t, "east"), f.Member(t, "west", podAddresses)
	ns := namespaceOf(t, east.Cluster, west.Cluster)
	others := standsBy(t, ns, west, east)
	service := east.Service(t, ns, "web", ports, "10.58.1.1")
	export := east.Export(t, ns, "web")
	fromEast := map[string][]string{"east": {service.Spec.ClusterIP}}
	west.AwaitImport(t, ns, "web", fromEast)
	east.Change(t, export, func() { export.Spec.ExportedLabels = map[string]string{"tier": "front"} }) // makes a merge annotation
	fleet.Eventually(t, "the label is imported", func() error {
		if got := mustImport(t, west, ns, "web").Labels["tier"]; got != "front" {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	witness := west.Watch(t, ns, "web")

	for name, mark := range map[string]struct {
		in         *fleet.Controller
		object     client.Object
		annotation string
	}{
		"facts of a Service": {f.Leader, named(&v1alpha1.ResourceExport{}, f.Area, "east-"+ns+"-web-service"), v1alpha1.AnnotationService},
		"facts of a merge":   {f.Leader, named(&v1alpha1.ResourceImport{}, f.Area, ns+"-web-service"), v1alpha1.AnnotationMerge},
		"answer to east":     {f.Leader, named(&v1alpha1.MemberClusterAnnounce{}, f.Area, "member-announce-from-east"), v1alpha1.AnnotationLeader},
		"answer to west":     {f.Leader, named(&v1alpha1.MemberClusterAnnounce{}, f.Area, "member-announce-from-west"), v1alpha1.AnnotationLeader},
		"memory of west":     {west, named(&v1alpha2.ClusterSet{}, west.Namespace, f.Name), v1alpha1.AnnotationLeaderSeen},
	} {
		t.Run(name, func(t *testing.T) {
			for _, garbage := range []string{"{", "[]", `{"exchange":7,"revision":"x","uid":{},"refusedPorts":"all"}`, "\u0000\ufffd", `{"exchange":"Pigeon","type":"None","revision":1}`} {
				mark.in.Change(t, mark.object, func() {
					annotations := mark.object.GetAnnotations()
					annotations[mark.annotation] = garbage
					mark.object.SetAnnotations(annotations)
				})
				fleet.Eventually(t, "it is written again", func() error {
					if err := mark.in.Get(t.Context(), client.ObjectKeyFromObject(mark.object), mark.object); err != nil {
						return err
					}
					if mark.object.GetAnnotations()[mark.annotation] == garbage {
						return errors.New("it is as spoilt as before")
					}
					return nil
				})
			}
			others.flows(t)
			if err := witness.Check(); err != nil {
				t.Error(err)
			}
		})
	}

	t.Run("memory of west, while it is down", func(t *testing.T) {
		west.Stop(t)
		west.ChangeSet(t, func(s *v1alpha2.ClusterSet) { s.Annotations[v1alpha1.AnnotationLeaderSeen] = "{" })
	})
	west.Start(t)
	fleet.Eventually(t, "west holds withdrawals: that may be what the memory said", func() error {
		if !witness.SawReason(clusterset.ReasonLeaderRestored) {
			return errors.New("it did not say so")
		}
		return nil
	})
	west.AwaitReady(t)
	set, err := west.ReadSet(t)
	if err != nil {
		t.Fatal(err)
	}
	if memory := clusterset.ReadMemory(set.Annotations); memory.ClusterSetUID == "" || memory.HoldSince != nil {
		t.Errorf("west remembers %+v", memory)
	}
	others.flows(t)
	east.Endpoints(t, ns, "web", ports) // what is wanted goes on
	west.AwaitImport(t, ns, "web", map[string][]string{})
	east.Unexport(t, ns, "web")
	west.AwaitNoImport(t, ns, "web")
}
