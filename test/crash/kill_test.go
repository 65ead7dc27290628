package crash_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A matrix of crashes proves something only if a process dies where it says.
func TestProcessDiesExactlyThere(t *testing.T) {
	for name, tc := range map[string]struct {
		at      point
		arrived int // of three writes
		killed  string
	}{
		"nowhere":            {point{}, 3, ""},
		"before the first":   {point{1, before}, 0, "PUT /a"},
		"after the first":    {point{1, after}, 1, "PUT /a"},
		"before the last":    {point{3, before}, 2, "DELETE /a"},
		"after the last":     {point{3, after}, 3, "DELETE /a"},
		"later than it does": {point{4, before}, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			arrived := 0
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "leases") {
					arrived++
				}
			}))
			defer server.Close()
			p := &process{name: "it"}
			p.arm(tc.at)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p.life = &life{end: cancel}
			client := http.Client{Transport: p.wrap(http.DefaultTransport)}
			send := func(method, path, body string) error {
				request, err := http.NewRequestWithContext(ctx, method, server.URL+path, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				answer, err := client.Do(request)
				if err == nil {
					answer.Body.Close()
				}
				return err
			}
			_ = send(http.MethodPut, "/a", `{"n":1}`)
			_ = send(http.MethodPut, "/leases", `{}`)
			_ = send(http.MethodPut, "/a", `{"n":2}`)
			_ = send(http.MethodDelete, "/a", "")
			if arrived != tc.arrived {
				t.Errorf("%d writes arrived, want %d", arrived, tc.arrived)
			}
			if _, killed, _ := p.report(); killed != tc.killed {
				t.Errorf("killed at %q, want %q", killed, tc.killed)
			}
			if dead := send(http.MethodGet, "/b", "") != nil; dead != (tc.killed != "") {
				t.Errorf("dead is %v", dead)
			}
		})
	}
}
