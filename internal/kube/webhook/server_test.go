package webhook_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/lockstep-dev/lockstep/internal/kube/webhook"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
)

type counted struct{ n atomic.Int64 }

func (c *counted) Admitted(*admissionv1.AdmissionRequest, admission.Verdict) { c.n.Add(1) }

func handler(meter webhook.Meter) http.Handler {
	return webhook.Handler(map[string]webhook.Decide{
		"/deny": webhook.Verdict(func(context.Context, *admissionv1.AdmissionRequest) admission.Verdict {
			return admission.Verdict{Rule: "R-1", Code: http.StatusForbidden, Message: "cannot; because; do (R-1)"}
		}),
		"/patch": func(context.Context, *admissionv1.AdmissionRequest) webhook.Answer {
			return webhook.Answer{Verdict: admission.Verdict{Allowed: true}, Patch: []admission.Patch{{Op: "add", Path: "/a", Value: "b"}}}
		},
	}, meter)
}

func TestReviews(t *testing.T) {
	asked := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","operation":"CREATE"}}`
	for name, tc := range map[string]struct {
		reason, method, path, body string
		status                     int
		answer                     string
	}{
		"denied":       {"the verdict is the answer", "POST", "/deny", asked, 200, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u1","allowed":false,"status":{"metadata":{},"status":"Failure","message":"cannot; because; do (R-1)","reason":"Forbidden","code":403}}}`},
		"changed":      {"the patch travels with it", "POST", "/patch", asked, 200, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u1","allowed":true,"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6ImIifV0=","patchType":"JSONPatch"}}`},
		"no request":   {"an empty review must not be allowed", "POST", "/deny", `{}`, 400, ""},
		"no JSON":      {"nor anything else", "POST", "/deny", `x`, 400, ""},
		"elsewhere":    {"no rule stands there", "POST", "/allow", asked, 404, ""},
		"not a review": {"reviews are posted", "GET", "/deny", "", 405, ""},
		"too large":    {"an API server sends no more than two objects", "POST", "/deny", strings.Repeat(" ", 9<<20), 413, ""},
	} {
		t.Run(name, func(t *testing.T) {
			meter, w := &counted{}, httptest.NewRecorder()
			handler(meter).ServeHTTP(w, httptest.NewRequest(tc.method, tc.path, strings.NewReader(tc.body)))
			if w.Code != tc.status {
				t.Errorf("status %d, want %d: %s", w.Code, tc.status, tc.reason)
			}
			if got := strings.TrimSpace(w.Body.String()); tc.answer != "" && got != tc.answer {
				t.Errorf("got %s\nwant %s: %s", got, tc.answer, tc.reason)
			}
			if (meter.n.Load() == 1) != (tc.status == 200) {
				t.Errorf("%d verdicts were counted", meter.n.Load())
			}
		})
	}
}

// Another certificate is served without a restart, and a server that ends still
// answers for a while.
func TestServer(t *testing.T) {
	first, second := selfSigned(t), selfSigned(t)
	var current atomic.Pointer[tls.Certificate]
	listening := make(chan net.Addr, 1)
	server := &webhook.Server{
		Address: "127.0.0.1:0", Handler: handler(&counted{}), Drain: 3 * time.Second,
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if c := current.Load(); c != nil {
				return c, nil
			}
			return nil, io.EOF
		},
		Listening: func(a net.Addr) { listening <- a },
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	address := (<-listening).String()
	ask := func() ([]byte, error) {
		client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the certificate is what the test looks at
		body, _ := json.Marshal(admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{}})
		response, err := client.Post("https://"+address+"/deny", "application/json", bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		if response.ProtoMajor != 1 {
			t.Errorf("HTTP/%d was spoken", response.ProtoMajor)
		}
		return response.TLS.PeerCertificates[0].Raw, nil
	}
	if _, err := ask(); err == nil {
		t.Error("something was answered without a certificate")
	}
	for _, want := range []*tls.Certificate{first, second} {
		current.Store(want)
		if got, err := ask(); err != nil || !bytes.Equal(got, want.Certificate[0]) {
			t.Errorf("another certificate was served (%v)", err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := ask(); err != nil {
		t.Errorf("it holds up its manager, or did not answer to the end: %v", err)
	}
	server.Drained()
	if _, err := ask(); err == nil {
		t.Error("it answers after its end")
	}
}

func selfSigned(t *testing.T) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
