package monitor_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/mirror/examine"
	"github.com/lockstep-dev/lockstep/internal/mirror/monitor"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/stored"
)

// world is a pair whose comparison and clock a test sets.
type world struct {
	now    time.Time
	report examine.Report
	err    error
}

func (w *world) monitor() *monitor.Monitor {
	return monitor.New(monitor.Options{
		Now: func() time.Time { return w.now },
		Examine: func(context.Context) (examine.Report, error) {
			report := w.report
			report.Time, report.OwnerRev = w.now, 7
			return report, w.err
		},
	})
}

func get(t *testing.T, client *http.Client, url, accept string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// serveIPv6 serves on the loopback address of IPv6, which needs brackets.
func serveIPv6(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("this machine has no IPv6 on loopback: %v", err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}}
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// covers: D-11
func TestCheck(t *testing.T) {
	w := &world{now: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	w.report.Verdict = replica.Verdict{Consistent: true, Keys: 3, Cut: replica.Cut{Rev: 10, Mod: 20}}
	server := serveIPv6(t, w.monitor().Handler())
	if !strings.Contains(server.URL, "[::1]") {
		t.Fatalf("served at %s", server.URL)
	}
	check := func(accept string) (int, monitor.Answer, string) {
		status, body := get(t, server.Client(), server.URL+"/check", accept)
		var answer monitor.Answer
		if accept != "" {
			if err := json.Unmarshal([]byte(body), &answer); err != nil && status == http.StatusOK {
				t.Fatalf("%v: %s", err, body)
			}
		}
		return status, answer, body
	}
	status, answer, body := check("application/json")
	if status != http.StatusOK || answer.Verdict != replica.Unknown || !strings.Contains(body, `"localMissedKeys":[]`) || !strings.Contains(body, `"localSurplusKeys":[]`) {
		t.Errorf("one clean cut is answered %d: %s", status, body)
	}
	w.now = w.now.Add(59 * time.Second)
	if status, _, body := check("application/json"); status != http.StatusTooEarly {
		t.Errorf("within a minute it is answered %d: %s", status, body)
	}
	w.now = w.now.Add(2 * time.Second)
	if status, answer, body := check("application/json"); status != http.StatusOK || answer.Verdict != replica.Consistent {
		t.Errorf("two clean cuts are answered %d: %s", status, body)
	}

	w.now = w.now.Add(time.Hour)
	w.report.Verdict = replica.Verdict{Keys: 3, Missed: 1, Surplus: 1, Differs: 1, Cut: replica.Cut{Rev: 11, Mod: 21}, Findings: []replica.Finding{
		{Key: "/registry/a", Kind: replica.Missed, Critical: true}, {Key: "/registry/b\xff", Kind: replica.Extra},
		{Key: "/registry/c", Kind: replica.Differs, Reason: stored.DeletingOnStandby},
	}}
	w.report.Dangling = []replica.Dangling{{Owner: "Set x (UID 1)", Dependent: "/registry/d", Dependents: 1}}
	w.report.DanglingCount = 1
	_, _, body = check("")
	want := `LOCAL ETCD missed keys
/registry/a

LOCAL ETCD surplus keys
"/registry/b\xff"

Different values
/registry/c (deletionTimestamp only on the standby)

Owners that the standby does not have
/registry/d is owned by Set x (UID 1), which the standby does not have; it would be garbage-collected

Changed by somebody else since the cut

Standby at revision 21 against primary at revision 11: 1 missed, 1 surplus, 1 different; 3 keys here, 3 there
Verdict Inconsistent: 1 missed, 1 surplus, 1 different of 3 keys
`
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}

	w.now, w.err = w.now.Add(time.Hour), errors.New("the primary does not answer")
	if status, _, body := check("application/json"); status != http.StatusServiceUnavailable || !strings.Contains(body, "does not answer") || !strings.Contains(body, "Unknown") {
		t.Errorf("what cannot be compared is answered %d: %s", status, body)
	}
	if status, _ := get(t, server.Client(), server.URL+"/healthz", ""); status != http.StatusOK {
		t.Errorf("/healthz is answered %d", status)
	}
	_, metrics := get(t, server.Client(), server.URL+"/metrics", "")
	for _, line := range []string{"local_target_keys_count 3", "remote_target_keys_count 3", `lockstep_mirror_differences{kind="missed"} 1`, `lockstep_mirror_verdict{verdict="Unknown"} 1`} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("metrics lack %q:\n%s", line, metrics)
		}
	}
	w.err, w.report = nil, examine.Report{Verdict: replica.Verdict{Consistent: true, Keys: 3}}
	for range 2 {
		w.now = w.now.Add(61 * time.Second)
		check("")
	}
	for _, want := range []string{"Consistent", "Unknown"} {
		if _, metrics := get(t, server.Client(), server.URL+"/metrics", ""); !strings.Contains(metrics, `lockstep_mirror_verdict{verdict="`+want+`"} 1`) {
			t.Errorf("the metrics do not say %s:\n%s", want, metrics)
		}
		w.now = w.now.Add(time.Hour) // nobody compares any more
	}
}

// A client that goes before the comparison has ended leaves it to the next one.
func TestCheckOfAnImpatientClient(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	gone, leave := context.WithCancel(t.Context())
	compared := 0
	m := monitor.New(monitor.Options{
		Now: func() time.Time { return now },
		Examine: func(ctx context.Context) (examine.Report, error) {
			leave()
			if ctx.Err() != nil {
				t.Error("the comparison ended with the client")
			}
			compared++
			return examine.Report{Time: now, OwnerRev: 7, Verdict: replica.Verdict{Consistent: true, Keys: 3}}, nil
		},
	})
	check := func(ctx context.Context) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/check", nil))
		return w
	}
	check(gone)
	for i, want := range []int{http.StatusOK, http.StatusTooEarly} {
		if w := check(t.Context()); w.Code != want || compared != 1 {
			t.Errorf("request %d after it is answered %d after %d comparisons, want %d after 1", i+1, w.Code, compared, want)
		}
	}
}
