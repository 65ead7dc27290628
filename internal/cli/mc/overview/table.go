package overview

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// rowsShown is how long a table of Services gets before it is cut.
const rowsShown = 40

// Write prints the page as tables; all shows every row of every table.
func (v View) Write(w io.Writer, all bool) error {
	out := &writer{tabs: tabwriter.NewWriter(w, 0, 0, 3, ' ', 0), limit: rowsShown}
	if all {
		out.limit = 0
	}
	out.failed = len(v.unread()) > 0
	for i, set := range v.ClusterSets {
		if i > 0 {
			out.line("")
		}
		out.clusterSet(set)
	}
	if len(v.ClusterSets) == 0 {
		out.line("no ClusterSet in the clusters that were read")
	}
	out.problems("NOT READ", v.unread())
	return out.tabs.Flush()
}

type writer struct {
	tabs  *tabwriter.Writer
	limit int
	// failed: some context that was given could not be read.
	failed bool
}

func (w *writer) line(text string) {
	fmt.Fprintln(w.tabs, Printable(text))
}

// Printable spells out control characters, as Go does: what other clusters say
// is not to steer the terminal it is read on (ECMA-48: the sets C0 and C1), nor
// to look like something else by the direction it is written in.
func Printable(text string) string {
	var out strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

// row writes cells in columns; an empty one is shown as a dash.
func (w *writer) row(cells []string) {
	shown := make([]string, len(cells))
	for i, cell := range cells {
		shown[i] = Printable(cmp.Or(cell, "-"))
	}
	fmt.Fprintln(w.tabs, strings.Join(shown, "\t"))
}

// table writes rows below a header, and nothing when there are none. The empty
// line before it also ends the columns of the table above.
func table[R any](w *writer, header []string, rows []R, cells func(R) []string) {
	if len(rows) == 0 {
		return
	}
	w.line("")
	w.row(header)
	for i, row := range rows {
		if w.limit > 0 && i == w.limit {
			w.line(fmt.Sprintf("… %d more; -o wide shows all", len(rows)-i))
			return
		}
		w.row(cells(row))
	}
}

func (w *writer) clusterSet(set ClusterSet) {
	w.row([]string{"CLUSTERSET", "LEADER", "CONTEXT", "NAMESPACE", "MEMBERS", "READY"})
	w.row([]string{set.Name, set.Leader.ClusterID, set.Leader.Context, set.Leader.Namespace, set.Leader.count(), set.Leader.Ready.String()})
	table(w, []string{"MEMBER", "CONTEXT", "LEADER SEES", "MEMBER SEES", "HEARTBEAT", "PEER", "EXCHANGE", "EXPORTS", "IMPORTS"}, set.Members, Member.cells)
	if w.limit == 0 { // wide
		table(w, []string{"LEASE OF", "RENEWED", "SILENT SINCE", "LOST", "CLEAN-UP"}, withLease(set.Members), Member.leaseCells)
	}
	table(w, []string{"NETWORK OF", "SERVICE CIDR", "POD CIDRS", "GATEWAY IP", "ENCRYPTED"}, withNetwork(set.Members), Member.networkCells)
	table(w, []string{"EXPORT", "CLUSTER", "VALID", "READY", "CONFLICT"}, set.Exports, Export.cells)
	table(w, []string{"IMPORT", "IN", "TYPE", "IP", "READY", "READY ENDPOINTS"}, set.Imports, Import.cells)
	table(w, []string{"POLICY", "EXPORT", "MERGED", "IMPORTED"}, set.Policies, Policy.cells)
	w.unread(set)
	w.problems("PROBLEMS", set.Problems)
}

// unread says of whom the tables know by hearsay only, or nothing: the members
// are known to their leader.
func (w *writer) unread(set ClusterSet) {
	if len(set.Unread) == 0 {
		return
	}
	var who []string
	for _, id := range set.Unread {
		switch {
		case id != set.Leader.ClusterID:
			who = append(who, fmt.Sprintf("member %q", id))
		case set.Leader.Context == "":
			who = append(who, fmt.Sprintf("leader %q, which knows who the members are", id))
		default:
			who = append(who, fmt.Sprintf("%q as a member", id))
		}
	}
	w.line("")
	next := "give their contexts with --contexts A,B, or --all-contexts"
	if w.failed {
		next = "they may be behind what could not be read, below, else " + next
	}
	w.line("not read: " + strings.Join(who, ", ") + "; " + next)
}

func (w *writer) problems(title string, problems []Problem) {
	if len(problems) == 0 {
		return
	}
	w.line("")
	w.line(title)
	for _, p := range problems {
		w.line(p.String())
	}
}

// String is the problem on one line.
func (p Problem) String() string {
	text := p.What
	if p.Why != "" {
		text += ": " + p.Why
	}
	text += "; " + p.Next
	if p.Rule != "" {
		text += " (" + p.Rule + ")"
	}
	return text
}

func (l Leader) count() string {
	if l.Context == "" {
		return ""
	}
	return fmt.Sprintf("%d/%d", l.MembersReady, l.Members)
}

func (m Member) cells() []string {
	exports, imports := "", ""
	if m.Context != "" {
		exports, imports = fmt.Sprint(m.Exports), fmt.Sprint(m.Imports)
	}
	return []string{m.ClusterID, m.Context, m.LeaderSees.String(), m.MemberSees.String(), m.heartbeat(), m.Peer, m.Exchange, exports, imports}
}

func (m Member) heartbeat() string { return ago(m.HeartbeatAge) }

// ago is an age in seconds as people say it; "" when it is not known.
func ago(seconds *int64) string {
	if seconds == nil {
		return ""
	}
	age := time.Duration(*seconds) * time.Second
	if age < 0 {
		return "in " + short(-age)
	}
	return short(age) + " ago"
}

// withLease are the members of which there is more to tell than their beats.
func withLease(members []Member) []Member {
	return slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return m.LeaseAge == nil && m.SilentSince == nil })
}

func (m Member) leaseCells() []string {
	at := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	cleanUp := at(m.CleanUpAt)
	if m.CleanUpHeld {
		cleanUp = "held"
	}
	return []string{m.ClusterID, ago(m.LeaseAge), at(m.SilentSince), m.Lost, cleanUp}
}

func (e Export) cells() []string {
	return []string{e.Namespace + "/" + e.Name, e.ClusterID, e.Valid.String(), e.Ready.String(), e.conflict()}
}

// conflict turns the sense of a condition round: here True is the bad news, and
// has the reason.
func (e Export) conflict() string {
	if e.Conflict.isTrue() && e.Conflict.Reason != "" {
		return fmt.Sprintf("True (%s)", e.Conflict.Reason)
	}
	return e.Conflict.Status
}

func (i Import) cells() []string {
	var sources []string
	for _, s := range i.Sources {
		sources = append(sources, fmt.Sprintf("%s:%d", cmp.Or(s.ClusterID, "?"), s.ReadyEndpoints))
	}
	return []string{i.Namespace + "/" + i.Name, i.ClusterID, i.Type, strings.Join(i.IPs, ","), i.Ready.String(), strings.Join(sources, " ")}
}

// short prints a duration in its largest unit: 5s, 12m, 3h, 2d.
func short(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}
