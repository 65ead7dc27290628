package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"github.com/lockstep-dev/lockstep/internal/lab/pki"
)

// certificateYears is longer than any lab lives: only the fault lets a
// certificate expire.
const certificateYears = 5

// ensureCredentials issues what is not there yet, so an interrupted first
// start is completed by the next.
func (s *site) ensureCredentials(now time.Time) error {
	authority, err := s.ensureAuthority(now)
	if err != nil {
		return err
	}
	for file, request := range s.certificates() {
		if exists(s.pki(file+".crt")) && exists(s.pki(file+".key")) {
			continue
		}
		request.NotBefore, request.NotAfter = now.Add(-time.Hour), now.AddDate(certificateYears, 0, 0)
		if err := s.issue(authority, file, request); err != nil {
			return err
		}
	}
	if exists(s.pki("sa.key")) {
		return nil
	}
	_, key, err := pki.NewKey()
	if err != nil {
		return err
	}
	return writeFile(s.pki("sa.key"), key)
}

// certificates are all that one cluster needs, by file name.
func (s *site) certificates() map[string]pki.Request {
	return map[string]pki.Request{
		"admin":              {Name: "admin", Groups: []string{"system:masters"}},
		"controller-manager": {Name: "system:kube-controller-manager", Addresses: s.serverAddresses()},
		"etcd-client":        {Name: "etcd-client"},
		"egress":             {Name: "egress", Addresses: s.serverAddresses()},
		"etcd":               {Name: "etcd", DNS: []string{"localhost"}, Addresses: s.serverAddresses()},
		apiServerCertificate: s.apiServerRequest(),
	}
}

// apiServerCertificate is the file name of the certificate that a fault lets expire.
const apiServerCertificate = "apiserver"

func (s *site) apiServerRequest() pki.Request {
	return pki.Request{
		Name: "kube-apiserver",
		DNS: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local",
		},
		// The first address of the range is that of Service default/kubernetes.
		Addresses: append(s.serverAddresses(), s.ServiceCIDR.Masked().Addr().Next()),
	}
}

// serverAddresses also cover the relays, which listen on the cluster's address.
func (s *site) serverAddresses() []netip.Addr {
	return []netip.Addr{s.Address, netip.AddrFrom4([4]byte{127, 0, 0, 1})}
}

func (s *site) ensureAuthority(now time.Time) (*pki.Authority, error) {
	cert, certErr := os.ReadFile(s.pki("ca.crt"))
	key, keyErr := os.ReadFile(s.pki("ca.key"))
	switch err := errors.Join(certErr, keyErr); {
	case err == nil:
		return pki.ParseAuthority(pki.Pair{Cert: cert, Key: key})
	case !errors.Is(certErr, fs.ErrNotExist) && !errors.Is(keyErr, fs.ErrNotExist):
		return nil, fmt.Errorf("cannot read the certificate authority of cluster %q: %w", s.Name, err)
	}
	authority, err := pki.NewAuthority("lockstep-lab-"+s.Name, now)
	if err != nil {
		return nil, err
	}
	return authority, s.writePair("ca", authority.PEM())
}

// issue writes one certificate and its key, replacing what was there.
func (s *site) issue(a *pki.Authority, file string, r pki.Request) error {
	pair, err := a.Issue(r)
	if err != nil {
		return err
	}
	return s.writePair(file, pair)
}

// writePair writes the key first: a certificate on disk promises its key.
func (s *site) writePair(file string, pair pki.Pair) error {
	if err := writeFile(s.pki(file+".key"), pair.Key); err != nil {
		return err
	}
	return writeFile(s.pki(file+".crt"), pair.Cert)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
