package probe_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lockstep-dev/lockstep/internal/lab/node/probe"
)

// Each story is a row of answers (+ good, - bad) given whenever the machine
// asks; what comes out is the verdict after each, and when it was asked.
func TestMachine(t *testing.T) {
	for name, test := range map[string]struct {
		spec     probe.Spec
		answers  string
		verdicts string // ? unknown, P passing, F failing
		times    string
	}{
		"thresholds are answers in a row": {
			spec:     probe.Spec{InitialDelay: 3 * time.Second, Period: 10 * time.Second, Successes: 2, Failures: 3},
			answers:  "+-++--+---+",
			verdicts: "???PPPPPPFF",
			times:    "3s 13s 23s 33s 43s 53s 1m3s 1m13s 1m23s 1m33s 1m43s",
		},
		"an eager probe looks often until the first success, and a failure in between counts nothing": {
			spec:     probe.Spec{Period: time.Second, Successes: 1, Failures: 2, Eager: true},
			answers:  "------+-",
			verdicts: "?????FPP", // bad at 0 s (counts), .05, .15, .35, .75, 1 s (counts)
			times:    "0s 50ms 150ms 350ms 750ms 1s 2s 3s",
		},
		"a patient one does not": {
			spec:     probe.Spec{Period: time.Second, Successes: 1, Failures: 2},
			answers:  "--+",
			verdicts: "?FP",
			times:    "0s 1s 2s",
		},
	} {
		started := time.Unix(1000, 0)
		m := probe.NewMachine(test.spec, started)
		var verdicts strings.Builder
		var times []string
		for _, answer := range test.answers {
			times = append(times, m.Due().Sub(started).String())
			verdicts.WriteByte("?PF"[m.Record(m.Due(), answer == '+')])
		}
		if got := verdicts.String(); got != test.verdicts {
			t.Errorf("%s: verdicts %s; want %s", name, got, test.verdicts)
		}
		if got := strings.Join(times, " "); got != test.times {
			t.Errorf("%s: looked at\n%s; want\n%s", name, got, test.times)
		}
	}
}

func TestRunReportsChangesAndFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		answers := []error{nil, nil, errors.New("refused"), nil}
		var heard []string
		check := func(ctx context.Context) error {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("a look without a deadline")
			}
			answer := answers[0]
			if answers = answers[1:]; len(answers) == 0 {
				cancel() // the last answer comes too late to be heard
			}
			return answer
		}
		m := probe.NewMachine(probe.Spec{Period: time.Second, Timeout: time.Second, Successes: 1, Failures: 1}, time.Now())
		probe.Run(ctx, m, check, func(v probe.Verdict, err error) { heard = append(heard, fmt.Sprint(v, " ", err)) })
		if got, want := strings.Join(heard, "; "), "1 <nil>; 2 refused"; got != want {
			t.Errorf("heard %q; want %q", got, want)
		}
	})
}

func TestCheck(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "http://nowhere.invalid/", http.StatusFound)
		case "/who":
			if r.Host != "me" || r.Header.Get("X-Key") != "k" || r.URL.RawQuery != "a=b" {
				http.Error(w, "stranger", http.StatusForbidden)
			}
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	host, port := split(t, plain.URL)
	_, securePort := split(t, secure.URL)
	container := &corev1.Container{Name: "web", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: int32(port)}}}
	get := func(path string, p intstr.IntOrString, scheme corev1.URIScheme) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: p, Scheme: scheme,
			HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "me"}, {Name: "X-Key", Value: "k"}},
		}}}
	}
	for name, test := range map[string]struct {
		probe *corev1.Probe
		good  bool
	}{
		"named port":             {get("/", intstr.FromString("http"), ""), true},
		"headers and query":      {get("/who?a=b", intstr.FromInt(port), "HTTP"), true},
		"redirect is an answer":  {get("/moved", intstr.FromInt(port), ""), true},
		"any certificate":        {get("/", intstr.FromInt(securePort), "HTTPS"), true},
		"error status":           {get("/broken", intstr.FromInt(port), ""), false},
		"plain text to TLS port": {get("/", intstr.FromInt(securePort), "HTTP"), false},
		"tcp":                    {tcp("", port), true},
		"tcp on another host":    {tcp("127.99.0.1", port), false},
	} {
		target, err := probe.TargetOf(test.probe, container, host)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := target.Check(t.Context()); (err == nil) != test.good {
			t.Errorf("%s: Check = %v; want good = %v", name, err, test.good)
		}
	}
}

func TestTargetErrors(t *testing.T) {
	container := &corev1.Container{Name: "web"}
	for want, p := range map[string]*corev1.Probe{
		`has no port of that name`: {ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}},
		`use httpGet or tcpSocket`: {ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{}}},
	} {
		if _, err := probe.TargetOf(p, container, netip.IPv6Loopback()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("TargetOf = %v; want %q", err, want)
		}
	}
}

func tcp(host string, port int) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: host, Port: intstr.FromInt(port)}}}
}

func split(t *testing.T, raw string) (netip.Addr, int) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	host, text, err := net.SplitHostPort(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return netip.MustParseAddr(host), port
}
