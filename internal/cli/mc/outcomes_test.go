package mc

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// toldIn checks that a text in one of the formats of outcomes says what became of
// these objects: "kind/name outcome", which the format "name" has without outcomes.
func toldIn(t *testing.T, format, text string, want ...string) {
	t.Helper()
	var got []string
	if format == "name" {
		got = strings.Split(strings.TrimSpace(text), "\n")
		for i := range want {
			want[i], _, _ = strings.Cut(want[i], " ")
		}
	} else {
		for _, o := range outcomesIn(t, format, text) {
			got = append(got, o.Kind+"/"+o.Name+" "+string(o.Outcome))
			if o.Namespace == "" && !slices.Contains([]string{"namespace", kindCRD}, o.Kind) {
				t.Errorf("%s does not say in which Namespace %s %q is", format, o.Kind, o.Name)
			}
		}
	}
	same(t, want, got)
}

// outcomesIn takes a document of outcomes apart.
func outcomesIn(t *testing.T, format, text string) []Touched {
	t.Helper()
	var printed struct{ Objects []Touched }
	parse := json.Unmarshal
	if format == "yaml" {
		parse = func(data []byte, into any) error { return yaml.UnmarshalStrict(data, into) }
		if strings.HasPrefix(strings.TrimSpace(text), "{") {
			t.Errorf("this is JSON:\n%s", text)
		}
	}
	if err := parse([]byte(text), &printed); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	return printed.Objects
}

// TestOutcomesInEveryFormat goes the way from the ClusterSet to its end in each of
// the formats in which a verb tells what became of each object.
func TestOutcomesInEveryFormat(t *testing.T) {
	c, hub := cluster(t)
	for _, format := range []string{"json", "yaml", "name"} {
		t.Run(format, func(t *testing.T) {
			area, member, shop := namespace(t, c, "area"), eastJoins(t, c).Namespace, in(aService(t, c))
			token := t.TempDir() + "/token.yaml"
			for _, step := range []struct {
				line string
				want []string
			}{
				{"init --clusterset fleet --clusterid hub --wait 0 -n " + area, []string{"clusterset/fleet created"}},
				{"create membertoken east-token --cluster-id east -n " + area + " --output-file " + token,
					[]string{"serviceaccount/east-token created", "rolebinding/east-token created", "secret/east-token created"}},
				{"join --clusterset fleet --clusterid east --leader-clusterid hub --leader-namespace " + area +
					" --leader-apiserver https://hub.example --token-secret-file " + token + " --wait 0 -n " + member,
					[]string{"secret/east-token created", "clusterset/fleet created"}},
				{"accept-leader --clusterset fleet --yes -n " + member, []string{"clusterset/fleet unchanged"}},
				{"export cart --wait 0 -n " + shop, []string{"serviceexport/cart created"}},
				{"export cart --wait 0 -n " + shop, []string{"serviceexport/cart unchanged"}},
				{"unexport cart --wait 0 -n " + shop, []string{"serviceexport/cart deleted"}},
				{"unexport cart --wait 0 -n " + shop, []string{"serviceexport/cart not found"}},
				{"leave --clusterset fleet -n " + member, []string{"clusterset/fleet deleted", "secret/east-token deleted"}},
				{"delete membertoken east-token -n " + area,
					[]string{"secret/east-token deleted", "rolebinding/east-token deleted", "serviceaccount/east-token deleted"}},
				{"destroy --clusterset fleet -n " + area, []string{"clusterset/fleet deleted"}},
			} {
				out, errOut, err := command(t, hub, append(strings.Fields(step.line), "--output", format)...)
				if err != nil {
					t.Fatalf("%s: %v\n%s", step.line, err, errOut)
				}
				toldIn(t, format, out, step.want...)
			}
		})
	}
}

// A rotation tells its objects too; the new Secret has a name that nobody knows
// before.
func TestOutcomesOfARotationInEveryFormat(t *testing.T) {
	c, hub := cluster(t)
	for _, format := range []string{"json", "yaml", "name"} {
		r := newRotation(t, c, true)
		out, errOut, err := command(t, hub, "rotate-token", "east-token", "-n", r.leader, "--member-context", "hub", "--member-namespace", r.member,
			"--wait", testTime.String(), "--output", format)
		if err != nil {
			t.Fatalf("%v\n%s", err, errOut)
		}
		now, err := readRotation(t.Context(), c, r.leader, "east-token")
		if err != nil {
			t.Fatal(err)
		}
		toldIn(t, format, out, "secret/"+now.Token().Name+" created", "secret/east-token configured", "secret/east-token deleted")
		removeSets(t, c, r.member)
	}
}
