// Package handshake tells what a TLS client found wrong with the certificate of
// a server.
//
// What it says does not change while the problem does not: the errors of
// crypto/x509 hold the present time, which would make every condition that
// quotes them flap.
package handshake

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind of a problem, which decides what to do about it.
type Kind int

const (
	// UnknownAuthority: no CA that is trusted has signed it.
	UnknownAuthority Kind = iota + 1
	// OutOfTime: it has expired, or is not valid yet.
	OutOfTime
	// OtherName: it is not for the address that was called.
	OtherName
	// Unfit: anything else that makes it invalid.
	Unfit
)

// Problem is one of a certificate. Why completes "the certificate …".
type Problem struct {
	Kind Kind
	Why  string
}

// Find looks for a problem with a certificate in the chain of an error; ok is
// false when there is none.
func Find(err error) (p Problem, ok bool) {
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	switch {
	case errors.As(err, &authority):
		return Problem{UnknownAuthority, "is signed by an authority that is not trusted here"}, true
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		return Problem{OutOfTime, fmt.Sprintf("is valid from %s to %s only", day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter))}, true
	case errors.As(err, &invalid):
		return Problem{Unfit, "is not valid: " + strings.TrimPrefix(invalid.Error(), "x509: ")}, true
	case errors.As(err, &name):
		return Problem{OtherName, fmt.Sprintf("is not for %q%s", name.Host, names(name.Certificate))}, true
	default:
		return Problem{}, false
	}
}

func day(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// names says what a certificate is for.
func names(c *x509.Certificate) string {
	if c == nil {
		return ""
	}
	all := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return ""
	}
	return " but for " + strings.Join(all, ", ")
}
