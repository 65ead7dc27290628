package pki_test

import (
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/lab/pki"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestIssuedCertificateVerifies(t *testing.T) {
	address := netip.MustParseAddr("127.9.1.1")
	for name, tc := range map[string]struct {
		reason string
		from   time.Time
		to     time.Time
		host   string
		ok     bool
	}{
		"address": {reason: "clients call the server by its address", from: now.Add(-time.Hour), to: now.Add(time.Hour), host: "127.9.1.1", ok: true},
		"name":    {reason: "Pods call it by its Service", from: now.Add(-time.Hour), to: now.Add(time.Hour), host: "kubernetes", ok: true},
		"other":   {reason: "another cluster's address is not covered", from: now.Add(-time.Hour), to: now.Add(time.Hour), host: "127.9.2.1"},
		"expired": {reason: "the expired-certificate fault relies on it", from: now.Add(-2 * time.Hour), to: now.Add(-time.Hour), host: "kubernetes"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := pki.NewAuthority("east", now)
			if err != nil {
				t.Fatal(err)
			}
			a, err = pki.ParseAuthority(a.PEM()) // as it is read back from a file
			if err != nil {
				t.Fatal(err)
			}
			pair, err := a.Issue(pki.Request{Name: "kube-apiserver", DNS: []string{"kubernetes"}, Addresses: []netip.Addr{address}, NotBefore: tc.from, NotAfter: tc.to})
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(a.PEM().Cert)
			_, err = parse(t, pair.Cert).Verify(x509.VerifyOptions{Roots: roots, DNSName: tc.host, CurrentTime: now})
			if (err == nil) != tc.ok {
				t.Errorf("%s: verify gave %v", tc.reason, err)
			}
		})
	}
}

func parse(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
