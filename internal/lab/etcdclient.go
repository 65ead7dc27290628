package lab

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdDialTimeout bounds the connection to an etcd on this machine.
const etcdDialTimeout = 5 * time.Second

// withEtcd runs f with a client of the cluster's etcd.
func (s *site) withEtcd(ctx context.Context, f func(*clientv3.Client) error) error {
	client, err := s.etcdClient(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	return f(client)
}

func (s *site) etcdClient(ctx context.Context) (*clientv3.Client, error) {
	tls, err := s.tlsConfig("etcd-client")
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Context:     ctx,
		Endpoints:   []string{s.url(s.Ports.Etcd)},
		TLS:         tls,
		DialTimeout: etcdDialTimeout,
		Logger:      zap.NewNop(), // what fails is returned
	})
}

// EtcdClient returns a client of the cluster's etcd, which the caller closes.
// Its watches outlast the death of the API server, and of etcd itself, without a
// gap, which no watch of an API server does.
func (c *Cluster) EtcdClient(ctx context.Context) (*clientv3.Client, error) {
	return c.site.etcdClient(ctx)
}
