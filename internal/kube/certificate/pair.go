package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	plan "github.com/lockstep-dev/lockstep/internal/plan/certificate"
)

// skew is by how much the clock of an API server may be behind ours. That an old
// date is accepted harms nobody: the pair did not exist then.
const skew = 7 * 24 * time.Hour

// pair is a key pair with the CA that signed it, all in PEM.
type pair struct {
	authority, certificate, key []byte
}

// issue makes a key pair, and a CA for it alone. The key of the CA is kept
// nowhere: nobody can sign a second certificate that the API server would trust.
func issue(names []string, now, end time.Time) (pair, error) {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	authority := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "lockstep webhook CA " + now.UTC().Format(time.RFC3339)},
		NotBefore: now.Add(-skew), NotAfter: end,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if authority.SerialNumber, err = serial(); err != nil {
		return pair{}, err
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return pair{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	leaf := &x509.Certificate{
		Subject:   pkix.Name{CommonName: names[0]},
		NotBefore: now.Add(-skew), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if leaf.SerialNumber, err = serial(); err != nil {
		return pair{}, err
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	if err != nil {
		return pair{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{
		authority:   encode("CERTIFICATE", authorityDER),
		certificate: encode("CERTIFICATE", leafDER),
		key:         encode("PRIVATE KEY", keyDER),
	}, nil
}

func serial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// authorities reads a bundle of CAs.
func authorities(bundle []byte) ([]*x509.Certificate, error) {
	var found []*x509.Certificate
	for len(bytes.TrimSpace(bundle)) > 0 {
		block, rest := pem.Decode(bundle)
		if block == nil {
			return nil, errors.New("the bundle of CAs is no PEM")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("the bundle of CAs: %w", err)
		}
		found, bundle = append(found, certificate), rest
	}
	return found, nil
}

// usable reads a key pair that one of the CAs has signed. Whether it has ended is
// for the plan to say.
func usable(certificate, key []byte, trusted []*x509.Certificate) (*tls.Certificate, error) {
	if len(certificate) == 0 && len(key) == 0 {
		return nil, nil
	}
	loaded, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	for _, authority := range trusted {
		roots.AddCert(authority)
	}
	_, err = loaded.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: loaded.Leaf.NotBefore.Add(skew), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return &loaded, err
}

// planned is what the plan has to know of a key pair.
func planned(loaded *tls.Certificate) *plan.Pair {
	if loaded == nil {
		return nil
	}
	leaf := loaded.Leaf
	names := append([]string(nil), leaf.DNSNames...)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return &plan.Pair{Made: leaf.NotBefore.Add(skew), End: leaf.NotAfter, Names: names}
}

// contains tells whether a bundle holds every CA of another.
func contains(bundle, wanted []byte) bool {
	have, err := authorities(bundle)
	if err != nil {
		return false
	}
	want, err := authorities(wanted)
	if err != nil {
		return false
	}
	for _, w := range want {
		found := false
		for _, h := range have {
			found = found || h.Equal(w)
		}
		if !found {
			return false
		}
	}
	return true
}
