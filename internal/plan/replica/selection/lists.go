package selection

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/plan/spelling"
)

// The wire's ConfigMap and the keys of it that are known.
const (
	// ConfigMapName is the object that holds an installation's own lists.
	ConfigMapName = "etcd-sync-ignore-text"
	// IgnoreEqualFile lists keys that stay local.
	IgnoreEqualFile = "ignore-equal.txt"
	// SyncEqualFile lists keys that are mirrored.
	SyncEqualFile = "sync-equal-file.txt"
	// AdditionalIgnoreEqual is the parameter of the plugin with more keys that
	// stay local; here it may also be an entry of the ConfigMap.
	AdditionalIgnoreEqual = "additional_ignore_equal"
)

var files = []string{AdditionalIgnoreEqual, IgnoreEqualFile, SyncEqualFile}

// Lists is what an installation says about its own keys.
type Lists struct {
	IgnoreEqual, SyncEqual map[string]bool
	// Opaque names entries of the ConfigMap whose meaning is not known; they
	// change nothing and are shown.
	Opaque []string
	// Notices are sentences about lines that are no mistake but probably not
	// meant either.
	Notices []string
}

// LineError is one line of a list that cannot be used.
type LineError struct {
	// List is the entry of the ConfigMap, or the parameter; Line counts from 1.
	List string
	Line int
	// Key is the line without spaces around it.
	Key string
	// Why it cannot be used, and what to write instead.
	Why, Next string
}

func (e *LineError) Error() string {
	return fmt.Sprintf("cannot use line %d of %s, %q: %s; %s", e.Line, e.List, e.Key, e.Why, e.Next)
}

// With adds what an installation says to the built-in rules.
func (r Rules) With(lists Lists) Rules {
	r.IgnoreEqual, r.SyncEqual = lists.IgnoreEqual, lists.SyncEqual
	return r
}

// ParseLists reads the data of the ConfigMap and the parameter of the plugin.
// A list has one exact key per line; empty lines, lines that begin with "#" and
// the "- " of a YAML list are allowed. All lines that cannot be used are
// reported together, as *LineError.
func (r Rules) ParseLists(data map[string]string, additional []string) (Lists, error) {
	p := parser{rules: r, lists: Lists{IgnoreEqual: map[string]bool{}, SyncEqual: map[string]bool{}}}
	p.list(IgnoreEqualFile, lines(data[IgnoreEqualFile]), p.lists.IgnoreEqual)
	p.list(SyncEqualFile, lines(data[SyncEqualFile]), p.lists.SyncEqual)
	p.list(AdditionalIgnoreEqual, lines(data[AdditionalIgnoreEqual]), p.lists.IgnoreEqual)
	p.list(AdditionalIgnoreEqual, additional, p.lists.IgnoreEqual)
	for name := range data {
		if !slices.Contains(files, name) {
			p.lists.Opaque = append(p.lists.Opaque, name)
		}
	}
	slices.Sort(p.lists.Opaque)
	p.notices()
	return p.lists, errors.Join(p.errs...)
}

func lines(text string) []string { return strings.Split(text, "\n") }

type parser struct {
	rules Rules
	lists Lists
	errs  []error
}

func (p *parser) list(name string, lines []string, into map[string]bool) {
	for i, line := range lines {
		key := strings.TrimSpace(line)
		if item, ok := strings.CutPrefix(key, "- "); ok {
			key = strings.Trim(strings.TrimSpace(item), `"'`)
		}
		if key == "" || strings.HasPrefix(key, "#") {
			continue
		}
		if why, next := p.fault(name, key); why != "" {
			p.errs = append(p.errs, &LineError{List: name, Line: i + 1, Key: key, Why: why, Next: next})
			continue
		}
		into[key] = true
	}
}

// fault is why a key cannot stand in a list, and what to write instead; empty
// when it can.
func (p *parser) fault(list, key string) (why, next string) {
	rest, inside := strings.CutPrefix(key, p.rules.Root())
	switch {
	case !strings.HasPrefix(key, "/"):
		return "a key begins with a slash", fmt.Sprintf("write the whole key, such as %sconfigmaps/NAMESPACE/NAME", p.rules.Root())
	case strings.ContainsAny(key, " \t,;"):
		return "a key has no spaces, commas or semicolons", "write one key per line"
	case strings.Contains(key, "*"):
		return "lists hold exact keys, no patterns", "write one line for each key"
	case strings.HasSuffix(key, "/"):
		return "it is a range, and lists hold exact keys", "write one line for each key below it"
	case list == SyncEqualFile && !inside:
		return fmt.Sprintf("it is not below %s", p.rules.Root()), "remove the line: nothing outside of Kubernetes is mirrored"
	case list == SyncEqualFile:
		if row, never := findRow(rest, true); never {
			return "it is never mirrored: " + row.Why, "remove the line"
		}
	}
	return "", ""
}

func (p *parser) notices() {
	for _, name := range p.lists.Opaque {
		if near := spelling.Nearest(name, files); near != "" {
			p.lists.Notices = append(p.lists.Notices, fmt.Sprintf("the entry %q has no known meaning and changes nothing; did you mean %q?", name, near))
		}
	}
	var both []string
	for key := range p.lists.SyncEqual {
		if p.lists.IgnoreEqual[key] {
			both = append(both, key)
		}
	}
	slices.Sort(both)
	for _, key := range both {
		p.lists.Notices = append(p.lists.Notices, fmt.Sprintf("%s is in both lists and stays local", key))
	}
}
