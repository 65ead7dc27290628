package rulebook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/arch"
	"github.com/lockstep-dev/lockstep/internal/arch/rulebook"
)

const list = "## Letters\nMEM-SE-1\tfirst\nMEM-SE-11\televenth\nADM-LS-1\tlease\n## Numbers\nCLI-5.1\tinit\nWK-6\tsixth\n"

func TestClaims(t *testing.T) {
	cases := map[string]struct {
		source   string
		claims   rulebook.Claims
		problems []string
	}{
		"by the name of a test; a longer number is another rule": {
			`func TestMEM_SE_11_Name(t *testing.T) {}`,
			rulebook.Claims{"MEM-SE-11": {"x.TestMEM_SE_11_Name"}}, nil,
		},
		"by a name that ends with the rule": {
			`func TestMEM_SE_1(t *testing.T) {}`,
			rulebook.Claims{"MEM-SE-1": {"x.TestMEM_SE_1"}}, nil,
		},
		"two rules in one name": {
			`func TestWK_6_and_MEM_SE_1(t *testing.T) {}`,
			rulebook.Claims{"WK-6": {"x.TestWK_6_and_MEM_SE_1"}, "MEM-SE-1": {"x.TestWK_6_and_MEM_SE_1"}}, nil,
		},
		"by a comment": {
			"// TestInit is about init.\n//\n// covers: CLI-5.1, WK-6\nfunc TestInit(t *testing.T) {}",
			rulebook.Claims{"CLI-5.1": {"x.TestInit"}, "WK-6": {"x.TestInit"}}, nil,
		},
		"by the name of a subtest": {
			`func TestAll(t *testing.T) { t.Run("WK-6 is told", func(t *testing.T) {}) }`,
			rulebook.Claims{"WK-6": {"x.TestAll/WK-6_is_told"}}, nil,
		},
		"any kind that the list has": {
			"// covers: ADM-LS-1\nfunc TestLease(t *testing.T) {}",
			rulebook.Claims{"ADM-LS-1": {"x.TestLease"}}, nil,
		},
		"a rule that is not listed is a problem": {
			`func TestWK_66(t *testing.T) {}`,
			rulebook.Claims{}, []string{"x.TestWK_66 names rule WK_66, which docs/rules.tsv does not list"},
		},
		"what is no test claims nothing": {
			`func helperWK_6() {}`, rulebook.Claims{}, nil,
		},
	}
	sections, err := rulebook.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "internal", "x", "x_test.go"), "package x\n\nimport \"testing\"\n\n"+c.source+"\n")
			tree, err := arch.Read(root)
			if err != nil {
				t.Fatal(err)
			}
			claims, problems := rulebook.Find(tree, sections)
			if diff := cmp.Diff(c.claims, claims); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.problems, problems); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPage(t *testing.T) {
	sections, err := rulebook.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	page := string(rulebook.Page(sections, rulebook.Claims{"WK-6": {"x.TestA", "x.TestB"}}))
	for _, want := range []string{
		"1 of 5 rules are met",
		"\n## Numbers\n",
		"| WK-6 | sixth | `x.TestA`<br>`x.TestB` |\n",
		"| MEM-SE-1 | first | not met yet |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

func TestParseNamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"## A\nWK-1 no tab":       "line 2",
		"WK-1\tfirst":             "line 1",
		"## A\nWK-1\ta\nWK-1\tb":  "line 3",
		"## A\nWK-1\ta\n\nWK-2\t": "line 3",
	} {
		if _, err := rulebook.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, want %s", text, err, want)
		}
	}
}
