package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"time"
)

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  Pair
}

// Pair is a certificate and its key, both PEM.
type Pair struct {
	Cert, Key []byte
}

// Request says whom a certificate is for.
type Request struct {
	// Name is the common name: for a client, its user name in Kubernetes.
	Name string
	// Groups are the organisations: for a client, its groups in Kubernetes.
	Groups []string
	// DNS and Addresses are the names a server may be called by. Without any
	// the certificate is a client's only.
	DNS       []string
	Addresses []netip.Addr
	// NotBefore and NotAfter bound the validity, both inclusive.
	NotBefore, NotAfter time.Time
}

// NewAuthority makes an authority that is valid from an hour before now, for
// machines whose clocks disagree, to ten years after.
func NewAuthority(name string, now time.Time) (*Authority, error) {
	key, keyPEM, err := NewKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.AddDate(10, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot make certificate authority %q: %w", name, err)
	}
	return ParseAuthority(Pair{Cert: encode("CERTIFICATE", der), Key: keyPEM})
}

// ParseAuthority reads an authority back.
func ParseAuthority(p Pair) (*Authority, error) {
	cert, key := decode(p.Cert), decode(p.Key)
	if cert == nil || key == nil {
		return nil, fmt.Errorf("cannot read certificate authority: certificate or key is not PEM")
	}
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		return nil, fmt.Errorf("cannot read certificate authority: %w", err)
	}
	signer, err := x509.ParseECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot read key of certificate authority %q: %w", parsed.Subject.CommonName, err)
	}
	return &Authority{cert: parsed, key: signer, pem: p}, nil
}

// PEM is the authority's own certificate and key.
func (a *Authority) PEM() Pair { return a.pem }

// Issue makes a key and signs a certificate for it.
func (a *Authority) Issue(r Request) (Pair, error) {
	key, keyPEM, err := NewKey()
	if err != nil {
		return Pair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: r.Name, Organization: r.Groups},
		NotBefore:    r.NotBefore,
		NotAfter:     r.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		DNSNames:     r.DNS,
	}
	for _, address := range r.Addresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	if len(r.DNS)+len(r.Addresses) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot issue certificate for %q: %w", r.Name, err)
	}
	return Pair{Cert: encode("CERTIFICATE", der), Key: keyPEM}, nil
}

// NewKey makes a P-256 key. Kubernetes signs ServiceAccount tokens with such a
// key too (ES256), and making one takes microseconds where RSA takes a second.
func NewKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot encode a key: %w", err)
	}
	return key, encode("EC PRIVATE KEY", der), nil
}

// serial is random: two certificates of one authority must not share it.
func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // does not fail (crypto/rand, since Go 1.24)
	return new(big.Int).SetBytes(b[:])
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func decode(data []byte) []byte {
	if block, _ := pem.Decode(data); block != nil {
		return block.Bytes
	}
	return nil
}
