package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Options say how to reach an etcd.
type Options struct {
	// Endpoints are URLs; all of one cluster.
	Endpoints []string
	// TLS is nil for http endpoints.
	TLS *tls.Config
	// Username and Password are for an etcd with authentication by password;
	// empty where a client certificate says who asks.
	Username, Password string
	// DialTimeout bounds the first connection; 0 means 5 s.
	DialTimeout time.Duration
}

const (
	dialTimeout = 5 * time.Second
	// A connection over which nothing comes back for 10 + 5 s is given up: a
	// network that drops packets closes none (M-5).
	keepAlive        = 10 * time.Second
	keepAliveTimeout = 5 * time.Second
	// sendBytes is above any sensible --max-request-bytes, so that the server,
	// whose limit counts, is the one that refuses.
	sendBytes = 64 << 20
)

// Client speaks with one etcd cluster.
type Client struct{ etcd *clientv3.Client }

// Open connects. The caller closes the client.
func Open(ctx context.Context, o Options) (*Client, error) {
	if o.DialTimeout == 0 {
		o.DialTimeout = dialTimeout
	}
	client, err := clientv3.New(clientv3.Config{
		Context:              ctx,
		Endpoints:            o.Endpoints,
		TLS:                  o.TLS,
		Username:             o.Username,
		Password:             o.Password,
		DialTimeout:          o.DialTimeout,
		DialKeepAliveTime:    keepAlive,
		DialKeepAliveTimeout: keepAliveTimeout,
		MaxCallSendMsgSize:   sendBytes,
		Logger:               zap.NewNop(), // what fails is returned
	})
	if err != nil {
		return nil, fmt.Errorf("cannot connect to etcd at %s: %w; check endpoints and certificates", strings.Join(o.Endpoints, ", "), err)
	}
	return &Client{etcd: client}, nil
}

// Close ends all requests and watches.
func (c *Client) Close() error { return c.etcd.Close() }

// Head is which cluster answers, and at which revision it is now.
type Head struct {
	ID  string // cluster ID, hexadecimal
	Rev int64
}

// Head reads from the quorum.
func (c *Client) Head(ctx context.Context) (Head, error) {
	// One key that need not exist: the answer's header is what counts.
	answer, err := c.etcd.Get(ctx, CheckpointKey, clientv3.WithCountOnly())
	if err != nil {
		return Head{}, fmt.Errorf("cannot read the revision of etcd: %w", err)
	}
	return Head{ID: fmt.Sprintf("%x", answer.Header.ClusterId), Rev: answer.Header.Revision}, nil
}
