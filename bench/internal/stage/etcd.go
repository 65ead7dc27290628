package stage

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Etcd is a client of the cluster's etcd; the caller closes it.
func (c *Cluster) Etcd() (*clientv3.Client, error) {
	pki := func(name string) string { return filepath.Join(c.Lab.Dir(), "pki", name) }
	tls, err := transport.TLSInfo{
		CertFile: pki("etcd-client.crt"), KeyFile: pki("etcd-client.key"), TrustedCAFile: pki("ca.crt"),
	}.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot use etcd of cluster %q: %w", c.Name, err)
	}
	return clientv3.New(clientv3.Config{
		Endpoints:   []string{"https://" + net.JoinHostPort(c.spec.Address.String(), strconv.Itoa(int(c.spec.Ports.Etcd)))},
		TLS:         tls,
		DialTimeout: 5 * time.Second,
		Logger:      zap.NewNop(), // what fails is returned
	})
}
