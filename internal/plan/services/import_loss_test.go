package services_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// readyOf are the ready addresses that a cluster has here.
func readyOf(o services.ImportObserved, cluster string) (addresses []string) {
	for _, s := range o.Slices {
		if s.Labels[mcsv1beta1.LabelSourceCluster] != cluster {
			continue
		}
		for _, e := range s.Endpoints {
			if ptr.Deref(e.Conditions.Ready, true) {
				addresses = append(addresses, s.Name+"/"+e.Addresses[0])
			}
		}
	}
	slices.Sort(addresses)
	return addresses
}

func slicesOf(o services.ImportObserved, cluster string) (n int) {
	for _, s := range o.Slices {
		if s.Labels[mcsv1beta1.LabelSourceCluster] == cluster {
			n++
		}
	}
	return n
}

// What becomes of two endpoints of east in west, which has imported them.
//
// covers: WK-42
func TestWK_42_EndpointsOfALostCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		loss          services.Loss
		hold          services.Hold
		ready, slices int
		blind         bool
	}{
		"nobody is lost":                        {services.Loss{Policy: "Withdraw"}, services.Hold{}, 2, 1, false},
		"another is lost":                       {services.Loss{Policy: "Withdraw", Lost: []string{"north"}}, services.Hold{}, 2, 1, false},
		"without a policy it is kept":           {services.Loss{Lost: []string{"east"}}, services.Hold{}, 2, 1, false},
		"Keep":                                  {services.Loss{Policy: "Keep", Lost: []string{"east"}}, services.Hold{}, 2, 1, false},
		"NotReady leaves the slice":             {services.Loss{Policy: "NotReady", Lost: []string{"east"}}, services.Hold{}, 0, 1, false},
		"Withdraw leaves the Service":           {services.Loss{Policy: "Withdraw", Lost: []string{"east"}}, services.Hold{}, 0, 0, false},
		"a policy of a later version is none":   {services.Loss{Policy: "Mirror", Lost: []string{"east"}}, services.Hold{}, 2, 1, false},
		"who does not see the leader waits":     {services.Loss{Policy: "Withdraw", Lost: []string{"east"}, Blind: true}, services.Hold{}, 2, 1, true},
		"a hold is stronger":                    {services.Loss{Policy: "Withdraw", Lost: []string{"east"}}, services.Hold{Active: true}, 2, 1, false},
		"one that is released is lost as usual": {services.Loss{Policy: "Withdraw", Lost: []string{"east"}}, services.Hold{Active: true, Released: map[string]bool{"east": true}}, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := imported(t, importing())
			o := before
			o.Loss, o.Hold = tc.loss, tc.hold
			if plan := services.Import(o); plan.Blind != tc.blind {
				t.Errorf("it waits for the sight of the leader: %t", plan.Blind)
			}
			o = imported(t, o)
			if ready := readyOf(o, "east"); len(ready) != tc.ready || slicesOf(o, "east") != tc.slices {
				t.Errorf("ready are %v, in %d slices", ready, slicesOf(o, "east"))
			}
			equal(t, "the Service", o.Service, before.Service)
			equal(t, "the spec of the ServiceImport", o.ServiceImport.Spec, before.ServiceImport.Spec)
			equal(t, "who exports", o.ServiceImport.Status.Clusters, before.ServiceImport.Status.Clusters)
		})
	}
}

// What was withdrawn before a hold began does not come back with it.
//
// covers: WK-42
func TestAHoldGivesNothingOfALostClusterBack(t *testing.T) {
	o := importing()
	o.Loss = services.Loss{Policy: v1alpha1.LossWithdraw, Lost: []string{"east"}}
	o = imported(t, o)
	o.Hold = services.Hold{Active: true}
	if ready := readyOf(imported(t, o), "east"); len(ready) > 0 {
		t.Errorf("ready are %v", ready)
	}
	o.Hold.Released = map[string]bool{"east": true}
	o.Loss.Lost = nil
	if ready := readyOf(imported(t, o), "east"); len(ready) != 2 {
		t.Errorf("after its return %v are ready", ready)
	}
}

// An endpoint that still serves is none that a proxy may fall back to.
func TestNothingOfALostClusterServes(t *testing.T) {
	o := importing(func(o *services.ImportObserved) {
		o.Remote[0].Endpoints[0].Conditions.Serving = ptr.To(true)
		o.Remote[0].Endpoints[0].Conditions.Terminating = ptr.To(true)
		o.Loss = services.Loss{Policy: v1alpha1.LossNotReady, Lost: []string{"east"}}
	})
	for _, s := range imported(t, o).Slices {
		for _, e := range s.Endpoints {
			if ptr.Deref(e.Conditions.Ready, true) || ptr.Deref(e.Conditions.Serving, false) {
				t.Errorf("%+v", e.Conditions)
			}
		}
	}
	if !ptr.Deref(o.Remote[0].Endpoints[0].Conditions.Serving, false) {
		t.Error("what was observed has been changed")
	}
}

// A member goes through any history of losses. In the dark nothing of a lost
// cluster moves; with sight, each policy takes as much as it says or less; a
// cluster that nobody lost does not notice; and when nobody is lost any more, all is
// as if nobody had ever been.
//
// covers: WK-42, WK-1
func TestLossProperties(t *testing.T) {
	genLoss := rapid.Custom(func(t *rapid.T) services.Loss {
		return services.Loss{
			Policy: rapid.SampledFrom([]v1alpha1.LossPolicy{"", v1alpha1.LossKeep, v1alpha1.LossNotReady, v1alpha1.LossWithdraw}).Draw(t, "policy"),
			Lost:   rapid.SampledFrom([][]string{nil, {"east"}, {"north"}, {"east", "north"}, {"east", "west"}}).Draw(t, "lost"),
			Blind:  rapid.Bool().Draw(t, "blind"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		usual := genImporting().Draw(t, "import")
		usual.Wire, usual.NamespaceActive, usual.Families = false, true, []corev1.IPFamily{"IPv4", "IPv6"}
		usual = settled(t, usual)
		o := usual
		for _, loss := range rapid.SliceOfN(genLoss, 1, 5).Draw(t, "losses") {
			before := o
			o.Loss = loss
			o = settled(t, o)
			equal(t, "doing it twice", settled(t, o).Slices, o.Slices)
			for _, cluster := range []string{"east", "north", "west"} {
				ready, was, without := readyOf(o, cluster), readyOf(before, cluster), readyOf(usual, cluster)
				lost := slices.Contains(loss.Lost, cluster) && cluster != "west" && (loss.Policy == v1alpha1.LossNotReady || loss.Policy == v1alpha1.LossWithdraw)
				switch {
				case lost && loss.Blind:
					equal(t, "in the dark, ready of "+cluster, ready, was)
				case lost && len(ready) > 0:
					t.Fatalf("%s is lost and has %v ready", cluster, ready)
				case lost && loss.Policy == v1alpha1.LossNotReady && slicesOf(o, cluster) != slicesOf(usual, cluster):
					t.Fatalf("%s has %d slices of %d", cluster, slicesOf(o, cluster), slicesOf(usual, cluster))
				case !lost:
					equal(t, "ready of "+cluster, ready, without)
				}
			}
			equal(t, "the Service", o.Service, usual.Service)
		}
		o.Loss = services.Loss{}
		o = settled(t, o)
		equal(t, "after the last return", byName(o.Slices), byName(usual.Slices))
	})
}

func byName(list []discoveryv1.EndpointSlice) map[string][]discoveryv1.Endpoint {
	found := map[string][]discoveryv1.Endpoint{}
	for _, s := range list {
		found[s.Name] = s.Endpoints
	}
	return found
}
