package mc

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/lockstep-dev/lockstep/internal/cli/mc/overview"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// preflightGroup is one heading of the page.
type preflightGroup struct {
	title string
	holds func(rule.Finding) bool
}

// preflightGroups in the order in which somebody has to deal with them.
var preflightGroups = []preflightGroup{
	{"REFUSE: do not upgrade before this is changed", weighs(rule.Refuse, false)},
	{"WAIT: look again in a minute", weighs(rule.Wait, false)},
	{"WARN, BROKEN: does harm already, upgrade or not", weighs(rule.Warn, true)},
	{"WARN: look at it", weighs(rule.Warn, false)},
	{"INFO", weighs(rule.Info, false)},
}

func weighs(weight rule.Severity, broken bool) func(rule.Finding) bool {
	return func(f rule.Finding) bool {
		return f.Severity == weight && !gap(f) && (f.Broken == broken || weight != rule.Warn)
	}
}

// gap tells what was not read from what was read and not understood: the former
// is shown once for all rules that miss it.
func gap(f rule.Finding) bool { return f.Unknown && len(f.Evidence) > 0 }

// write is the page for people; wide adds the rules that hold and the objects.
func (r PreflightReport) write(w io.Writer, wide bool) error {
	p := &preflightPage{out: w}
	p.parts(r.Parts)
	p.gaps(r.Findings)
	for _, group := range preflightGroups {
		p.group(group, r.Findings, wide)
	}
	p.summary(r, wide)
	return p.err
}

// preflightPage remembers the first failure to write.
type preflightPage struct {
	out io.Writer
	err error
}

// line prints what other clusters may have named: no control character gets through.
func (p *preflightPage) line(indent, format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.out, indent+overview.Printable(fmt.Sprintf(format, args...)))
	}
}

func (p *preflightPage) parts(parts preflight.Parts) {
	tabs := tabwriter.NewWriter(p.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tabs, "CLUSTERSET\tROLE\tCLUSTER\tCONTEXT\tNAMESPACE\tREAD")
	row := func(role string, part preflight.Part) {
		read := "yes"
		if part.Unreachable != "" {
			read = "no"
		}
		cells := []string{parts.ClusterSet, role, part.ID, part.Context, part.Namespace, read}
		for i, cell := range cells {
			cells[i] = overview.Printable(cmp.Or(cell, "<NONE>"))
		}
		fmt.Fprintln(tabs, strings.Join(cells, "\t"))
	}
	row("leader", parts.Leader)
	for _, m := range parts.Members {
		row("member", m)
	}
	p.err = tabs.Flush()
}

// gaps shows each thing that could not be read once, with the rules that miss it.
func (p *preflightPage) gaps(findings []rule.Finding) {
	missing := map[[2]string][]rule.Finding{}
	var order [][2]string
	for _, f := range findings {
		if !gap(f) {
			continue
		}
		key := [2]string{f.Cluster, strings.Join(f.Evidence, "; ")}
		if missing[key] == nil {
			order = append(order, key)
		}
		missing[key] = append(missing[key], f)
	}
	if len(order) == 0 {
		return
	}
	p.line("", "")
	p.line("", "NOT READ: no pass, and weighs as much as the rules that need it")
	for _, key := range order {
		where := "the leader cluster"
		if key[0] != "" {
			where = fmt.Sprintf("member %q", key[0])
		}
		var needed []string
		for _, f := range missing[key] {
			if !slices.Contains(needed, f.Rule) {
				needed = append(needed, f.Rule)
			}
		}
		slices.SortFunc(needed, rule.CompareIDs)
		p.line("", "%s: %s", where, key[1])
		p.line("    ", "needed by %s", strings.Join(needed, ", "))
	}
}

func (p *preflightPage) group(group preflightGroup, findings []rule.Finding, wide bool) {
	titled := false
	for _, f := range findings {
		if !group.holds(f) {
			continue
		}
		if !titled {
			p.line("", "")
			p.line("", "%s", group.title)
			titled = true
		}
		p.line("", "%s  %s", f.Rule, f.Message)
		for _, fact := range f.Evidence {
			p.line("    ", "%s", fact)
		}
		if wide {
			for _, object := range f.Objects {
				p.line("    ", "on %s", object)
			}
		}
		p.line("    ", "→ %s", f.Remedy)
	}
}

func (p *preflightPage) summary(r PreflightReport, wide bool) {
	found := map[string]bool{}
	for _, f := range r.Findings {
		found[f.Rule] = true
	}
	p.line("", "")
	p.line("", "%d of %d rules hold", len(r.Checked)-len(found), len(r.Checked))
	if !wide {
		return
	}
	for _, known := range preflight.Rules() {
		if slices.Contains(r.Checked, known.ID) && !found[known.ID] {
			p.line("", "%s  %s", known.ID, known.Title)
		}
	}
}
