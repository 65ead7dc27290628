package handshake_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/kube/handshake"
)

// Real handshakes: what the standard library says of each problem may change.
func TestFind(t *testing.T) {
	const year = 365 * 24 * time.Hour
	loopback := []net.IP{net.IPv4(127, 0, 0, 1)}
	for name, tc := range map[string]struct {
		from, to  time.Time
		addresses []net.IP
		trusted   bool
		kind      handshake.Kind
		why       string
	}{
		"good":            {from: past, to: future, addresses: loopback, trusted: true},
		"nobody's CA":     {past, future, loopback, false, handshake.UnknownAuthority, "is signed by an authority that is not trusted here"},
		"expired":         {past, past.Add(year), loopback, true, handshake.OutOfTime, "is valid from 2001-02-03T04:05:06Z to 2002-02-03T04:05:06Z only"},
		"not yet":         {future.Add(-year), future, loopback, true, handshake.OutOfTime, "is valid from 2100-01-01T00:00:00Z to 2101-01-01T00:00:00Z only"},
		"another address": {past, future, []net.IP{net.IPv4(192, 0, 2, 1)}, true, handshake.OtherName, `is not for "127.0.0.1" but for 192.0.2.1`},
	} {
		t.Run(name, func(t *testing.T) {
			authority, shown := issue(t, tc.from, tc.to, tc.addresses)
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{shown}}
			server.StartTLS()
			defer server.Close()
			trust := x509.NewCertPool()
			if tc.trusted {
				trust.AddCert(authority)
			}
			client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}}}
			answer, err := client.Get(server.URL)
			if err == nil {
				answer.Body.Close()
			}
			got, found := handshake.Find(err)
			if found != (tc.kind != 0) || got.Kind != tc.kind || got.Why != tc.why {
				t.Errorf("%v: found %v, %+v", err, found, got)
			}
		})
	}
	if got, found := handshake.Find(errors.New("x509: certificate signed by unknown authority")); found {
		t.Errorf("an error was known by its wording: %+v", got)
	}
}

var (
	past   = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	future = time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)
)

// issue makes a CA, and a certificate that it has signed.
func issue(t *testing.T, from, to time.Time, addresses []net.IP) (*x509.Certificate, tls.Certificate) {
	t.Helper()
	key := newKey(t)
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: past, NotAfter: future,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	authority = signed(t, authority, authority, key, key)
	own := newKey(t)
	shown := signed(t, &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: from, NotAfter: to, IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, authority, own, key)
	return authority, tls.Certificate{Certificate: [][]byte{shown.Raw}, PrivateKey: own}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signed(t *testing.T, c, by *x509.Certificate, key, with *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, with)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
