package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// PEM is what a TLS connection needs. Cert and Key may be empty together, for a
// server that asks no client certificate; an empty CA means the system's.
type PEM struct{ CA, Cert, Key []byte }

// Files are the paths of the same.
type Files struct{ CA, Cert, Key string }

// Config reads the files, again at each call: certificates are renewed in place.
func (f Files) Config() (*tls.Config, error) {
	var pem PEM
	for _, part := range []struct {
		path string
		into *[]byte
	}{{f.CA, &pem.CA}, {f.Cert, &pem.Cert}, {f.Key, &pem.Key}} {
		if part.path == "" {
			continue
		}
		text, err := os.ReadFile(part.path)
		if err != nil {
			return nil, fmt.Errorf("cannot read the credentials of etcd: %w; check the path", err)
		}
		*part.into = text
	}
	config, err := pem.Config()
	if err != nil {
		return nil, fmt.Errorf("%w (files %q, %q and %q)", err, f.CA, f.Cert, f.Key)
	}
	return config, nil
}

// Config checks and assembles the parts. No error quotes them.
func (p PEM) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(p.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(p.CA) {
			return nil, errors.New("cannot use the authority of etcd: it holds no certificate; give it as PEM")
		}
	}
	switch {
	case len(p.Cert) == 0 && len(p.Key) == 0:
	case len(p.Cert) == 0 || len(p.Key) == 0:
		return nil, errors.New("cannot use the client certificate of etcd: certificate and key go together; give both or neither")
	default:
		pair, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			return nil, fmt.Errorf("cannot use the client certificate of etcd: %w; give certificate and key as PEM", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
