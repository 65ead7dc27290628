package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	plan "github.com/lockstep-dev/lockstep/internal/plan/certificate"
)

// Keys of the Secret. The first three are those of the type kubernetes.io/tls,
// which cannot be empty and therefore is not the Secret's type.
const (
	keyAuthorities     = "ca.crt" // all that are trusted, the newest last
	keyCertificate     = corev1.TLSCertKey
	keyKey             = corev1.TLSPrivateKeyKey
	keyNextCertificate = "next.crt"
	keyNextKey         = "next.key"
)

// content is what a Secret holds, as far as it can be used.
type content struct {
	trusted       []*x509.Certificate
	current, next *tls.Certificate
	// problem is why something in it cannot be used; nil when all can, or when
	// there is nothing.
	problem error
}

func read(secret *corev1.Secret) (c content) {
	var err error
	if c.trusted, err = authorities(secret.Data[keyAuthorities]); err != nil {
		c.problem = err
		return c
	}
	if c.current, err = usable(secret.Data[keyCertificate], secret.Data[keyKey], c.trusted); err != nil {
		c.current, c.problem = nil, fmt.Errorf("the key pair in it: %w", err)
	}
	if c.next, err = usable(secret.Data[keyNextCertificate], secret.Data[keyNextKey], c.trusted); err != nil {
		c.next, c.problem = nil, fmt.Errorf("the next key pair in it: %w", err)
	}
	return c
}

func (c content) ends() []time.Time {
	ends := make([]time.Time, 0, len(c.trusted))
	for _, authority := range c.trusted {
		ends = append(ends, authority.NotAfter)
	}
	return ends
}

// take makes the step of a decision in a copy of the Secret.
func take(secret *corev1.Secret, step plan.Step, names []string, now time.Time, times plan.Times) (*corev1.Secret, error) {
	next := secret.DeepCopy()
	if next.Data == nil {
		next.Data = map[string][]byte{}
	}
	switch step {
	case plan.Issue, plan.Stage:
		fresh, err := issue(names, now, times.End(now))
		if err != nil {
			return nil, fmt.Errorf("cannot make a key pair: %w", err)
		}
		if step == plan.Issue {
			next.Data = map[string][]byte{keyAuthorities: fresh.authority, keyCertificate: fresh.certificate, keyKey: fresh.key}
			break
		}
		next.Data[keyAuthorities] = append(append([]byte(nil), secret.Data[keyAuthorities]...), fresh.authority...)
		next.Data[keyNextCertificate], next.Data[keyNextKey] = fresh.certificate, fresh.key
	case plan.Promote:
		next.Data[keyCertificate], next.Data[keyKey] = secret.Data[keyNextCertificate], secret.Data[keyNextKey]
		delete(next.Data, keyNextCertificate)
		delete(next.Data, keyNextKey)
	case plan.Prune:
		var left []byte
		for _, authority := range read(secret).trusted {
			if now.Before(authority.NotAfter) {
				left = append(left, encode("CERTIFICATE", authority.Raw)...)
			}
		}
		next.Data[keyAuthorities] = left
	}
	return next, nil
}
