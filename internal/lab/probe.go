package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// probeTimeout bounds one look: a frozen process accepts and never answers.
const probeTimeout = 2 * time.Second

// probe asks a health URL once, as the user whose certificate is in the given file.
func (s *site) probe(url, user string) func(context.Context) error {
	return func(ctx context.Context) error {
		client, err := s.httpClient(user)
		if err != nil {
			return err
		}
		defer client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
		body, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		return fmt.Errorf("%s answers %s: %s", url, response.Status, failedChecks(string(body)))
	}
}

// failedChecks keeps the lines of a health report that tell of trouble.
func failedChecks(body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "[-]") {
			failed = append(failed, strings.TrimSpace(line))
		}
	}
	if len(failed) == 0 {
		return strings.TrimSpace(body)
	}
	return strings.Join(failed, "; ")
}

// tlsConfig is a client's side of TLS towards the servers of this cluster.
func (s *site) tlsConfig(user string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(s.pki(user+".crt"), s.pki(user+".key"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the credentials of %q: %w", user, err)
	}
	ca, err := os.ReadFile(s.pki("ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}

func (s *site) httpClient(user string) (*http.Client, error) {
	config, err := s.tlsConfig(user)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config}}, nil
}
