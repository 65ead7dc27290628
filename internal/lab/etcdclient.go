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
	tls, err := s.tlsConfig("etcd-client")
	if err != nil {
		return err
	}
	client, err := clientv3.New(clientv3.Config{
		Context:     ctx,
		Endpoints:   []string{s.url(s.Ports.Etcd)},
		TLS:         tls,
		DialTimeout: etcdDialTimeout,
		Logger:      zap.NewNop(), // what fails is returned
	})
	if err != nil {
		return err
	}
	defer client.Close()
	return f(client)
}
