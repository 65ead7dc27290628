package services_test

import (
	"fmt"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// plain is a layout of slices "s.<n>" with one mark.
func plain(limit int, placeholder discoveryv1.AddressType) services.Layout {
	return services.Layout{
		Max:         limit,
		Placeholder: placeholder,
		Ours:        func(s *discoveryv1.EndpointSlice) bool { return s.Labels["ours"] == "yes" },
		Name:        func(n int) string { return fmt.Sprintf("s.%d", n) },
		Number: func(name string) (n int, ok bool) {
			_, err := fmt.Sscanf(name, "s.%d", &n)
			return n, err == nil
		},
		Dress: func(s *discoveryv1.EndpointSlice) { s.Labels = map[string]string{"ours": "yes"} },
	}
}

// packed reads "name: address address" and, after "|", the name of the port;
// "v6" instead of addresses is an empty IPv6 slice.
func packed(lines ...string) []discoveryv1.EndpointSlice {
	var list []discoveryv1.EndpointSlice
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, ":")
		addresses, portName, _ := strings.Cut(rest, "|")
		s := discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{"ours": "yes"}},
			AddressType: familyOf(strings.Fields(addresses)),
			Ports:       portsNamed(strings.TrimSpace(portName)),
			Endpoints:   endpoints(strings.Fields(addresses)...),
		}
		list = append(list, s)
	}
	return list
}

func portsNamed(name string) []discoveryv1.EndpointPort {
	if name == "" {
		name = "http"
	}
	if name == "none" {
		return nil
	}
	return slicePorts(name + ":80")
}

// printed is the reverse of packed, for changes.
func printed(changes []services.Change[discoveryv1.EndpointSlice]) []string {
	lines := []string{}
	for _, c := range changes {
		if c.Desired == nil {
			lines = append(lines, "delete "+c.Current.Name)
			continue
		}
		line := c.Desired.Name + ": " + strings.Join(addressesOf(c.Desired), " ")
		if len(c.Desired.Ports) > 0 && *c.Desired.Ports[0].Name != "http" {
			line += " | " + *c.Desired.Ports[0].Name
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

func wantGroup(portName string, addresses ...string) services.Group {
	return services.Group{AddressType: familyOf(addresses), Ports: portsNamed(portName), Endpoints: endpoints(addresses...)}
}

func TestWK_45_PackKeepsEndpointsWhereTheyAre(t *testing.T) {
	const v4 = discoveryv1.AddressTypeIPv4
	for name, tc := range map[string]struct {
		reason      string
		existing    []string
		want        []services.Group
		placeholder discoveryv1.AddressType
		changes     []string
	}{
		"nothing changed": {
			"a quiet system writes nothing, whatever order the slice is in",
			[]string{"s.0: b a"}, []services.Group{wantGroup("", "a", "b")}, "", []string{},
		},
		"first endpoints": {
			"slices are numbered from 0 and filled in order of address",
			nil, []services.Group{wantGroup("", "d", "b", "a", "c")}, "",
			[]string{"s.0: a b c", "s.1: d"},
		},
		"one more goes into the fullest": {
			"so that sparse slices drain",
			[]string{"s.0: a", "s.1: b c", "s.2: d e f"}, []services.Group{wantGroup("", "a", "b", "c", "d", "e", "f", "n")}, "",
			[]string{"s.1: b c n"},
		},
		"one more goes into the slice that changes anyway": {
			"one write instead of two",
			[]string{"s.0: a x", "s.1: b c"}, []services.Group{wantGroup("", "a", "b", "c", "n")}, "",
			[]string{"s.0: a n"},
		},
		"an emptied slice is filled rather than deleted": {
			"it changes anyway",
			[]string{"s.0: x", "s.1: b c"}, []services.Group{wantGroup("", "b", "c", "n")}, "",
			[]string{"s.0: n"},
		},
		"free places first, then the smallest free number": {
			"numbers stay small, and s.0 is still there when this is written",
			[]string{"s.1: b c"}, []services.Group{wantGroup("", "b", "c", "n", "o", "p", "q", "r")}, "",
			[]string{"s.1: b c n", "s.0: o p q", "s.2: r"},
		},
		"an emptied slice goes": {
			"nobody should read it",
			[]string{"s.0: a", "s.1: x"}, []services.Group{wantGroup("", "a")}, v4, []string{"delete s.1"},
		},
		"the last one stays as a placeholder": {
			"it says: published, and nobody there",
			[]string{"s.0: x", "s.1: y"}, nil, v4, []string{"s.0:", "delete s.1"},
		},
		"a placeholder is made": {
			"a Service without endpoints is published too",
			nil, nil, v4, []string{"s.0:"},
		},
		"a placeholder stays": {
			"nothing to write",
			[]string{"s.0:"}, nil, v4, []string{},
		},
		"a placeholder becomes the first slice": {
			"one write for the first endpoint, whatever its port",
			[]string{"s.0: | none"}, []services.Group{wantGroup("grpc", "a")}, v4, []string{"s.0: a | grpc"},
		},
		"a changed port rewrites in place": {
			"addresses stay in their slices; kube-proxy sees one change for each",
			[]string{"s.0: a b c", "s.1: d"}, []services.Group{wantGroup("grpc", "a", "b", "c", "d")}, "",
			[]string{"s.0: a b c | grpc", "s.1: d | grpc"},
		},
		"two sets of ports do not share a slice": {
			"a slice has one set; only the endpoint that moves is written",
			[]string{"s.0: a b c"}, []services.Group{wantGroup("", "a", "b"), wantGroup("grpc", "c")}, "",
			[]string{"s.0: a b", "s.1: c | grpc"},
		},
		"two families do not share a slice": {
			"a slice has one address type",
			[]string{"s.0: 10.0.0.1"}, []services.Group{wantGroup("", "10.0.0.1"), wantGroup("", "fd00::1")}, "",
			[]string{"s.1: fd00::1"},
		},
		"a changed port rewrites each family in place": {
			"a slice keeps its address type for life",
			[]string{"s.0: fd00::1", "s.1: 10.0.0.1"}, []services.Group{wantGroup("grpc", "10.0.0.1"), wantGroup("grpc", "fd00::1")}, "",
			[]string{"s.0: fd00::1 | grpc", "s.1: 10.0.0.1 | grpc"},
		},
		"an oversized slice is cut": {
			"others may have filled it; what does not fit moves",
			[]string{"s.0: a b c d e"}, []services.Group{wantGroup("", "a", "b", "c", "d", "e")}, "",
			[]string{"s.0: a b c", "s.1: d e"},
		},
		"an endpoint in two slices": {
			"after an interrupted write; the first keeps it",
			[]string{"s.0: a", "s.1: a b"}, []services.Group{wantGroup("", "a", "b")}, "",
			[]string{"s.1: b"},
		},
		"a slice with a name of others": {
			"it is ours by its labels, and used like any other",
			[]string{"odd: a"}, []services.Group{wantGroup("", "a", "b")}, "", []string{"odd: a b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := printed(services.Pack(packed(tc.existing...), tc.want, plain(3, tc.placeholder)))
			equal(t, tc.reason, got, tc.changes)
		})
	}
}

func TestWK_25_PackAvoidsSlicesOfOthers(t *testing.T) {
	foreign := packed("s.0: x")
	foreign[0].Labels = map[string]string{"somebody": "else"}
	got := printed(services.Pack(foreign, []services.Group{wantGroup("", "a")}, plain(3, "")))
	equal(t, "the name is taken and its slice is not ours", got, []string{"s.1: a"})
	got = printed(services.Pack(foreign, nil, plain(3, "")))
	equal(t, "nor is it ours to delete", got, []string{})
}

func TestPackRepairsMetadata(t *testing.T) {
	existing := packed("s.0: a b")
	layout := plain(3, "")
	layout.Dress = func(s *discoveryv1.EndpointSlice) {
		s.Labels["ours"], s.Labels["missing"] = "yes", "now there"
	}
	changes := services.Pack(existing, []services.Group{wantGroup("", "a", "b")}, layout)
	equal(t, "a label is missing", printed(changes), []string{"s.0: a b"})
	if existing[0].Labels["missing"] != "" {
		t.Error("the label was written into what was observed")
	}
}

// Kubernetes may list an endpoint in two slices while it moves it; its API asks
// readers to take it once.
func TestPackTakesTheReadyOneOfTwoReports(t *testing.T) {
	want := []services.Group{wantGroup("", "-a"), wantGroup("", "a"), wantGroup("", "-a")}
	changes := services.Pack(nil, want, plain(3, ""))
	if got := changes[0].Desired.Endpoints; len(got) != 1 || !*got[0].Conditions.Ready {
		t.Errorf("got %v", got)
	}
}

// Reports that differ in nothing that ranks them must not make plans flap.
func TestPackTakesTheSameOfTwoReportsInAnyOrder(t *testing.T) {
	for what, change := range map[string]func(e *discoveryv1.Endpoint, value *string){
		"hostname": func(e *discoveryv1.Endpoint, value *string) { e.Hostname = value },
		"zone":     func(e *discoveryv1.Endpoint, value *string) { e.Zone = value },
		"node":     func(e *discoveryv1.Endpoint, value *string) { e.NodeName = value },
		"serving": func(e *discoveryv1.Endpoint, value *string) {
			e.Conditions.Ready, e.Conditions.Serving = new(false), new(value != nil)
		},
	} {
		for _, values := range [][2]*string{{new("x"), new("y")}, {nil, new("y")}} {
			a, b := wantGroup("", "a"), wantGroup("", "a")
			change(&a.Endpoints[0], values[0])
			change(&b.Endpoints[0], values[1])
			one := services.Pack(nil, []services.Group{a, b}, plain(3, ""))
			other := services.Pack(nil, []services.Group{b, a}, plain(3, ""))
			equal(t, what+" by order", one, other)
		}
	}
}
