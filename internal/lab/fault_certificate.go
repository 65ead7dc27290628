package lab

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// expireCertificate gives the API server a certificate that ended an hour ago
// and returns when clients see it.
func (h *Host) expireCertificate(ctx context.Context, now time.Time) error {
	if err := h.reissue(ctx, now.Add(-48*time.Hour), now.Add(-time.Hour)); err != nil {
		return err
	}
	return h.units[APIServer].waitFor(ctx, func(err error) bool {
		var invalid x509.CertificateInvalidError
		return errors.As(err, &invalid) && invalid.Reason == x509.Expired
	})
}

// renewCertificate gives it a good one again.
func (h *Host) renewCertificate(ctx context.Context, now time.Time) error {
	if err := h.reissue(ctx, now.Add(-time.Hour), now.AddDate(certificateYears, 0, 0)); err != nil {
		return err
	}
	return h.units[APIServer].waitReady(ctx)
}

// reissue replaces the API server's certificate and starts it again: without
// the restart, open connections would go on under the old one.
func (h *Host) reissue(ctx context.Context, from, to time.Time) error {
	authority, err := h.site.ensureAuthority(from)
	if err != nil {
		return err
	}
	request := h.site.apiServerRequest()
	request.NotBefore, request.NotAfter = from, to
	if err := h.site.issue(authority, apiServerCertificate, request); err != nil {
		return fmt.Errorf("cannot issue a certificate: %w", err)
	}
	u := h.units[APIServer]
	if err := u.stop(ctx); err != nil {
		return err
	}
	u.start()
	return nil
}
