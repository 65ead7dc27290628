// Package rulebook joins the list of rules with the tests that prove them.
//
// A rule is an id ("MEM-SE-3") and a sentence. A test claims a rule by its
// name, in which the dashes of the id are underscores
// (TestMEM_SE_3_ReadyEndpoints), by the name of a subtest, or by a line
// `covers: MEM-SE-3` in its doc comment. A rule nobody claims is not met yet,
// and the page says so.
package rulebook

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/arch"
)

// Rule is one line of the list.
type Rule struct {
	ID, Meaning string
}

// Section is the rules under one heading.
type Section struct {
	Title string
	Rules []Rule
}

// Parse reads the list: "## title" begins a section, any other line is an id,
// a tab and the meaning.
func Parse(text string) ([]Section, error) {
	var sections []Section
	seen := map[string]bool{}
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			sections = append(sections, Section{Title: title})
			continue
		}
		id, meaning, ok := strings.Cut(line, "\t")
		switch {
		case !ok || id == "" || meaning == "":
			return nil, fmt.Errorf("line %d: want an id, a tab and a meaning, got %q", i+1, line)
		case len(sections) == 0:
			return nil, fmt.Errorf("line %d: rule %s stands under no heading", i+1, id)
		case seen[id]:
			return nil, fmt.Errorf("line %d: rule %s was listed before", i+1, id)
		}
		seen[id] = true
		last := &sections[len(sections)-1]
		last.Rules = append(last.Rules, Rule{id, meaning})
	}
	return sections, nil
}

// Claims maps a rule's id to the tests that claim it, in order.
type Claims map[string][]string

// Find collects the claims of all tests of the tree. Claims of ids that no
// section lists are returned as problems.
func Find(tree *arch.Tree, sections []Section) (Claims, []string) {
	finder := finder{ids: pattern(sections), known: map[string]string{}, claims: Claims{}}
	for _, section := range sections {
		for _, rule := range section.Rules {
			finder.known[key(rule.ID)] = rule.ID
		}
	}
	for _, file := range tree.Files {
		if !file.IsTest() {
			continue
		}
		for _, declaration := range file.AST.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv == nil && strings.HasPrefix(function.Name.Name, "Test") {
				finder.read(strings.TrimPrefix(file.Dir, "internal/")+"."+function.Name.Name, function)
			}
		}
	}
	for id := range finder.claims {
		slices.Sort(finder.claims[id])
	}
	slices.Sort(finder.problems)
	return finder.claims, finder.problems
}

type finder struct {
	ids      *regexp.Regexp    // what looks like a key
	known    map[string]string // key → id
	claims   Claims
	problems []string
}

func (f *finder) read(test string, function *ast.FuncDecl) {
	f.claim(test, strings.TrimPrefix(function.Name.Name, "Test"))
	if function.Doc != nil {
		for _, comment := range function.Doc.List {
			if ids, ok := strings.CutPrefix(comment.Text, "// covers: "); ok {
				f.claim(test, ids)
			}
		}
	}
	ast.Inspect(function, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		selector, isMethod := call.Fun.(*ast.SelectorExpr)
		literal, isLiteral := call.Args[0].(*ast.BasicLit)
		if isMethod && isLiteral && selector.Sel.Name == "Run" && literal.Kind == token.STRING {
			if name, err := strconv.Unquote(literal.Value); err == nil {
				f.claim(test+"/"+strings.ReplaceAll(name, " ", "_"), name)
			}
		}
		return true
	})
}

// pattern finds what looks like the key of a rule: a number behind what stands
// before the number of any rule of the list. So no kind of rule can be listed
// and never be found, and a wrong number is noticed.
func pattern(sections []Section) *regexp.Regexp {
	var kinds []string
	for _, section := range sections {
		for _, rule := range section.Rules {
			kinds = append(kinds, regexp.QuoteMeta(strings.TrimRight(key(rule.ID), "0123456789")))
		}
	}
	slices.Sort(kinds)
	return regexp.MustCompile(`(` + strings.Join(slices.Compact(kinds), "|") + `)[0-9]+`)
}

// claim notes every rule that a text names.
func (f *finder) claim(test, text string) {
	for _, found := range f.ids.FindAllString(key(text), -1) {
		id, ok := f.known[found]
		if !ok {
			f.problems = append(f.problems, fmt.Sprintf("%s names rule %s, which docs/rules.tsv does not list", test, found))
			continue
		}
		if !slices.Contains(f.claims[id], test) {
			f.claims[id] = append(f.claims[id], test)
		}
	}
}

// key is how an id reads in the name of a test.
func key(id string) string {
	return strings.NewReplacer("-", "_", ".", "_").Replace(id)
}

// Page renders the reference page.
func Page(sections []Section, claims Claims) []byte {
	var page bytes.Buffer
	total, met := 0, 0
	for _, section := range sections {
		for _, rule := range section.Rules {
			total++
			if len(claims[rule.ID]) > 0 {
				met++
			}
		}
	}
	fmt.Fprintf(&page, "# Rules and the tests that prove them\n\n"+
		"<!-- Made by `make generate` from docs/rules.tsv and the names of the tests. -->\n\n"+
		"Each rule is a promise about what the controllers and the command line do. A test claims a rule by its name\n"+
		"(`MEM-SE-3` is claimed by `TestMEM_SE_3_…`) or by a line `covers: MEM-SE-3` above it. %d of %d rules are met.\n", met, total)
	for _, section := range sections {
		fmt.Fprintf(&page, "\n## %s\n\n| rule | meaning | met by |\n| --- | --- | --- |\n", section.Title)
		for _, rule := range section.Rules {
			by := "not met yet"
			if tests := claims[rule.ID]; len(tests) > 0 {
				by = "`" + strings.Join(tests, "`<br>`") + "`"
			}
			fmt.Fprintf(&page, "| %s | %s | %s |\n", rule.ID, rule.Meaning, by)
		}
	}
	return page.Bytes()
}
