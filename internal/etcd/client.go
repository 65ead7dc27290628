package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
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
	// receiveBytes bounds what one answer takes in memory, and so how far off the
	// guess of its size may be. It is ten times etcd's default limit of one value.
	receiveBytes = 16 << 20
	// sendBytes is above any sensible --max-request-bytes, so that the server,
	// whose limit counts, is the one that refuses. The client wants it to be less
	// than what it receives.
	sendBytes = receiveBytes - 1
)

// Client speaks with one etcd cluster.
type Client struct {
	etcd *clientv3.Client
	// watches have a connection of their own: on one that carries large answers, etcd
	// may send nothing of a watch for as long as these last (etcd issue 15402).
	watches *clientv3.Client
}

// Open connects. The caller closes the client.
func Open(ctx context.Context, o Options) (*Client, error) {
	if o.DialTimeout == 0 {
		o.DialTimeout = dialTimeout
	}
	config := clientv3.Config{
		Context:              ctx,
		Endpoints:            o.Endpoints,
		TLS:                  o.TLS,
		Username:             o.Username,
		Password:             o.Password,
		DialTimeout:          o.DialTimeout,
		DialKeepAliveTime:    keepAlive,
		DialKeepAliveTimeout: keepAliveTimeout,
		MaxCallSendMsgSize:   sendBytes,
		MaxCallRecvMsgSize:   receiveBytes,
		Logger:               zap.NewNop(), // what fails is returned
	}
	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to etcd at %s: %w; check endpoints and certificates", strings.Join(o.Endpoints, ", "), err)
	}
	watches, err := clientv3.New(config)
	if err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("cannot connect to etcd at %s: %w; check endpoints and certificates", strings.Join(o.Endpoints, ", "), err)
	}
	return &Client{etcd: client, watches: watches}, nil
}

// Close ends all requests and watches.
func (c *Client) Close() error { return errors.Join(c.etcd.Close(), c.watches.Close()) }

// Head is which cluster answers, and at which revision it is now.
type Head struct {
	ID   string // cluster ID, hexadecimal
	Rev  int64
	Term uint64 // of raft
}

// Head reads from the quorum.
func (c *Client) Head(ctx context.Context) (Head, error) {
	// One key that need not exist: the answer's header is what counts.
	answer, err := c.etcd.Get(ctx, CheckpointKey, clientv3.WithCountOnly())
	if err != nil {
		return Head{}, fmt.Errorf("cannot read the revision of etcd: %w", err)
	}
	return Head{ID: fmt.Sprintf("%x", answer.Header.ClusterId), Rev: answer.Header.Revision, Term: answer.Header.RaftTerm}, nil
}

// Status is what one member says of itself. It is the zero value when none does:
// an etcd with authentication answers only its administrators.
type Status struct {
	Version string
	Index   uint64 // entries of the raft log that have been applied
	Rev     int64  // of this member, read before Index
}

// statusTime bounds a look at what is good to know and not needed.
const statusTime = 3 * time.Second

// Status asks the member that the client is connected to.
func (c *Client) Status(ctx context.Context) Status {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	answer, err := etcdserverpb.NewMaintenanceClient(c.etcd.ActiveConnection()).Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return Status{}
	}
	return Status{Version: answer.Version, Index: answer.RaftAppliedIndex, Rev: answer.Header.GetRevision()}
}

// Source is what this etcd is as the source of a mirror, but for epoch and rules.
// The member is asked before the quorum, as replica.Log wants it.
func (c *Client) Source(ctx context.Context) (replica.Source, error) {
	status := c.Status(ctx)
	head, err := c.Head(ctx)
	if err != nil {
		return replica.Source{}, err
	}
	return replica.Source{ID: head.ID, Rev: head.Rev, Log: replica.Log{Term: head.Term, Index: status.Index, Rev: status.Rev}}, nil
}
