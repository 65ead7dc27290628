package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lockstep-dev/lockstep/internal/mirror/examine"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// Answer is the body of /check. The first two fields are the wire's.
type Answer struct {
	LocalMissedKeys  []string `json:"localMissedKeys"`
	LocalSurplusKeys []string `json:"localSurplusKeys"`

	Verdict replica.Judgement `json:"verdict"`
	Reason  string            `json:"reason"`
	Time    time.Time         `json:"time"`
	Took    string            `json:"took"`
	Cut     replica.Cut       `json:"cut"`
	// Counts are complete; lists are cut off at 1,000.
	LocalCount   int                `json:"localCount"`
	RemoteCount  int                `json:"remoteCount"`
	Missed       int                `json:"missed"`
	Surplus      int                `json:"surplus"`
	Differs      int                `json:"differs"`
	Unread       int                `json:"unread"`
	Differences  []replica.Finding  `json:"differences"`
	CriticalKeys []string           `json:"criticalKeys"`
	OwnersMissed int                `json:"danglingOwnersCount"`
	Dangling     []replica.Dangling `json:"danglingOwners"`
	Foreign      []string           `json:"foreignWrites"`
	ForeignCount int                `json:"foreignWritesCount"`
	Owner        string             `json:"owner"`
	Classes      map[string]int     `json:"classes"`
}

// NewAnswer puts a report into the words of the wire.
func NewAnswer(r examine.Report, verdict replica.Judgement, why string) Answer {
	v := r.Verdict
	a := Answer{
		LocalMissedKeys: []string{}, LocalSurplusKeys: []string{}, Differences: []replica.Finding{}, CriticalKeys: []string{},
		Verdict: verdict, Reason: why, Time: r.Time, Took: r.Took, Cut: v.Cut, LocalCount: r.LocalKeys(), RemoteCount: v.Keys,
		Missed: v.Missed, Surplus: v.Surplus, Differs: v.Differs, Unread: v.Unread, OwnersMissed: r.DanglingCount,
		Dangling: r.Dangling, ForeignCount: r.ForeignCount, Owner: r.Owner, Classes: v.Classes, Foreign: []string{},
	}
	if a.Dangling == nil {
		a.Dangling = []replica.Dangling{}
	}
	for i := range a.Dangling {
		a.Dangling[i].Dependent, a.Dangling[i].Owner = Printable(a.Dangling[i].Dependent), Printable(a.Dangling[i].Owner)
	}
	for _, key := range r.Foreign {
		a.Foreign = append(a.Foreign, Printable(key))
	}
	for _, f := range v.Findings {
		f.Key = Printable(f.Key)
		switch f.Kind {
		case replica.Missed:
			a.LocalMissedKeys = append(a.LocalMissedKeys, f.Key)
		case replica.Extra:
			a.LocalSurplusKeys = append(a.LocalSurplusKeys, f.Key)
		default:
			a.Differences = append(a.Differences, f)
		}
		if f.Critical {
			a.CriticalKeys = append(a.CriticalKeys, f.Key)
		}
	}
	return a
}

// Printable is a key as one line of text. One that is not UTF-8, or would break
// the line, is quoted as Go does.
func Printable(key string) string {
	if utf8.ValidString(key) && strings.IndexFunc(key, unicode.IsControl) < 0 {
		return key
	}
	return strconv.QuoteToASCII(key)
}

// check answers the wire's request.
func (m *Monitor) check(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		http.Error(w, "use GET", http.StatusMethodNotAllowed)
		return
	}
	if r := m.takeUnread(); r != nil {
		m.answer(w, request, *r)
		return
	}
	if !m.begin() {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "the last check is under way, or younger than a minute; ask again in 10 seconds or later", http.StatusTooEarly)
		return
	}
	defer m.end()
	// A client that has no patience does not end the comparison: it would begin another
	// one a minute later, and never see the end of any.
	report, err := m.compare(context.WithoutCancel(request.Context()))
	if r := (result{report, err}); request.Context().Err() != nil {
		m.keepUnread(r)
	} else {
		m.answer(w, request, r)
	}
}

// result of a check.
type result struct {
	report examine.Report
	err    error
}

func (m *Monitor) answer(w http.ResponseWriter, request *http.Request, r result) {
	verdict, why := m.judge()
	asJSON := strings.Contains(request.Header.Get("Accept"), "application/json")
	if r.err != nil {
		if asJSON {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(map[string]string{"verdict": string(verdict), "reason": why})
			return
		}
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	answer := NewAnswer(r.report, verdict, why)
	if asJSON {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	answer.Text(w)
}

// Text is the report for people, and for parsers of the wire: after a heading
// one key a line, up to an empty line.
func (a Answer) Text(w io.Writer) {
	list := func(heading string, lines []string) {
		fmt.Fprintf(w, "%s\n", heading)
		for _, line := range lines {
			fmt.Fprintln(w, line)
		}
		fmt.Fprintln(w)
	}
	list("LOCAL ETCD missed keys", a.LocalMissedKeys)
	list("LOCAL ETCD surplus keys", a.LocalSurplusKeys)
	var differs, dangling []string
	for _, f := range a.Differences {
		differs = append(differs, fmt.Sprintf("%s (%s)", f.Key, f.Reason))
	}
	for _, d := range a.Dangling {
		dangling = append(dangling, d.String())
	}
	list("Different values", differs)
	list("Owners that the standby does not have", dangling)
	list("Changed by somebody else since the cut", a.Foreign)
	fmt.Fprintf(w, "Standby at revision %d against primary at revision %d: %d missed, %d surplus, %d different; %d keys here, %d there\n",
		a.Cut.Mod, a.Cut.Rev, a.Missed, a.Surplus, a.Differs, a.LocalCount, a.RemoteCount)
	fmt.Fprintf(w, "Verdict %s: %s\n", a.Verdict, a.Reason)
}
