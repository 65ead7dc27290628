package preflight_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

func TestAHealthyClusterSetHasNoFinding(t *testing.T) {
	for _, f := range preflight.Run(*healthy()) {
		t.Errorf("%s %s: %s %v", f.Severity, f.Rule, f.Message, f.Evidence)
	}
}

// tripwire is what a change of a healthy ClusterSet does to one check.
type tripwire struct {
	why    string
	change func(*preflight.Evidence)
	want   string // weight and cluster of the findings: "REFUSE east"; "" for none
}

func TestTripwires(t *testing.T) {
	for _, check := range preflight.Checks() {
		t.Run(check.ID, func(t *testing.T) {
			trips, passes := 0, 0
			for _, c := range tripwires[check.ID] {
				e := healthy()
				c.change(e)
				if got := weights(check.Find(*e)); got != c.want {
					t.Errorf("%s: found %q, want %q\n%s", c.why, got, c.want, describe(check.Find(*e)))
				}
				if c.want == "" {
					passes++
				} else {
					trips++
				}
			}
			if trips == 0 || passes == 0 {
				t.Errorf("the table has %d inputs that trip the rule and %d that just do not; it needs both", trips, passes)
			}
		})
	}
}

func weights(findings []rule.Finding) string {
	var all []string
	for _, f := range findings {
		words := []string{f.Severity.String()}
		if f.Broken {
			words[0] = "FIX"
		}
		if f.Unknown {
			words[0] = "UNKNOWN"
		}
		if f.Cluster != "" {
			words = append(words, f.Cluster)
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, ", ")
}

func describe(findings []rule.Finding) string {
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&text, "  %s: %s %v; %s\n", f.Rule, f.Message, f.Evidence, f.Remedy)
	}
	return text.String()
}

// Findings are sentences with a next step, no heavier than their rule.
func TestFindingsOfTripwires(t *testing.T) {
	for _, check := range preflight.Checks() {
		for _, c := range tripwires[check.ID] {
			e := healthy()
			c.change(e)
			for _, f := range check.Find(*e) {
				if f.Rule != check.ID || f.Message == "" || f.Remedy == "" || f.Severity > check.Severity && f.Severity != rule.Wait || strings.HasSuffix(f.Message, ".") {
					t.Errorf("%s, %s: %+v", check.ID, c.why, f)
				}
			}
		}
	}
}

// Nothing that was not read passes: of a ClusterSet nobody looked at, every
// check says that it does not know.
func TestEveryCheckNeedsEvidence(t *testing.T) {
	for _, e := range []preflight.Evidence{
		{Members: []preflight.Member{{ID: "east"}}},
		unreachable(),
	} {
		for _, check := range preflight.Checks() {
			findings := check.Find(e)
			if len(findings) == 0 {
				t.Errorf("%s passes on nothing", check.ID)
			}
			for _, f := range findings {
				if !f.Unknown {
					t.Errorf("%s knows %q", check.ID, f.Message)
				}
			}
		}
	}
}

// unreachable is a healthy ClusterSet of which no cluster answers.
func unreachable() preflight.Evidence {
	e := healthy()
	e.Leader.Unreachable = "connection refused"
	for i := range e.Members {
		e.Members[i].Unreachable = "connection refused"
	}
	return *e
}

// Each single thing that is not read is missed by some check.
func TestEveryReadIsMissed(t *testing.T) {
	// Where these two are not needed in a healthy set, a table above needs them.
	seldom := map[string]bool{"Tiers": true, "Labels": true}
	eachRead(t, reflect.TypeFor[preflight.Evidence](), nil, func(name string, path []int) {
		e := healthy()
		field := reflect.ValueOf(e).Elem()
		for _, i := range path {
			if field.Kind() == reflect.Slice {
				field = field.Index(0)
			}
			field = field.Field(i)
		}
		field.SetZero()
		findings := preflight.Run(*e)
		unknown := 0
		for _, f := range findings {
			if f.Unknown {
				unknown++
			}
		}
		if unknown == 0 && !seldom[name] {
			t.Errorf("nobody misses %s", name)
		}
	})
}

// eachRead calls visit with the path to every Read below a type.
func eachRead(t *testing.T, in reflect.Type, path []int, visit func(string, []int)) {
	for i := range in.NumField() {
		field := in.Field(i)
		next := append(append([]int{}, path...), i)
		kind := field.Type
		if kind.Kind() == reflect.Slice {
			kind = kind.Elem()
		}
		switch {
		case strings.HasPrefix(field.Type.Name(), "Read["):
			visit(field.Name, next)
		case kind.Kind() == reflect.Struct && strings.HasSuffix(kind.PkgPath(), "/preflight"):
			eachRead(t, kind, next, visit)
		}
	}
}

// The order in which clusters and objects are read does not matter, and what was
// read is as it was.
func TestOrderDoesNotMatter(t *testing.T) {
	var all []func(*preflight.Evidence)
	for _, check := range preflight.Checks() {
		for _, c := range tripwires[check.ID] {
			all = append(all, c.change)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		e := healthy()
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 0, 2).Draw(t, "changes") {
			func() {
				defer func() { _ = recover() }() // a change may need what an earlier one took away
				all[i](e)
			}()
		}
		want := preflight.Run(*e)
		if diff := cmp.Diff(want, preflight.Run(*e)); diff != "" {
			t.Fatalf("a second look differs: %s", diff)
		}
		e.Members = rapid.Permutation(e.Members).Draw(t, "members")
		if announces, ok := e.Leader.Announces.Get(); ok {
			e.Leader.Announces = rule.Known(rapid.Permutation(announces).Draw(t, "announces"))
		}
		if exports, ok := e.Leader.Exports.Get(); ok {
			e.Leader.Exports = rule.Known(rapid.Permutation(exports).Draw(t, "exports"))
		}
		if accounts, ok := e.Leader.Accounts.Get(); ok {
			e.Leader.Accounts = rule.Known(rapid.Permutation(accounts).Draw(t, "accounts"))
		}
		if diff := cmp.Diff(want, preflight.Run(*e)); diff != "" {
			t.Fatalf("the order mattered: %s", diff)
		}
	})
}
