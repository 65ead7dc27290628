package etcd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// CompactedError: the revision that was asked for can no longer be read.
type CompactedError struct {
	Rev int64 // what was asked for
	// Oldest is the lowest revision that can be read; 0 when etcd did not say.
	Oldest int64
}

func (e *CompactedError) Error() string {
	return fmt.Sprintf("etcd has compacted revision %d; read everything again at a newer one (M-3)", e.Rev)
}

// Range is what to read.
type Range struct {
	// Prefix of the keys, such as "/registry/".
	Prefix string
	// Rev is the revision to read at; 0 means the one that is current when the
	// first page is read. All pages are of one revision.
	Rev      int64
	KeysOnly bool
}

const (
	// pageBytes is how large a page is wanted: enough to make the round trip
	// cheap, little enough to hold two of them on each side.
	pageBytes = 1 << 20
	// Values are between a few bytes and 1.5 MiB, so the first page is small and
	// the next ones are measured by it. Pages of keys alone cannot be large.
	firstKeys    = 64
	mostKeys     = 1000
	keysOnlyKeys = 5000
)

// Read yields the keys in their order, page by page. A filter by revision is not
// offered: etcd then reads the whole rest of the range for each page. Keys alone
// come with their mod revision, which does the same here.
func (c *Client) Read(ctx context.Context, r Range) iter.Seq2[replica.KV, error] {
	return func(yield func(replica.KV, error) bool) {
		from, end, rev, limit := r.Prefix, clientv3.GetPrefixRangeEnd(r.Prefix), r.Rev, int64(firstKeys)
		options := []clientv3.OpOption{clientv3.WithRange(end)}
		if r.KeysOnly {
			options, limit = append(options, clientv3.WithKeysOnly()), keysOnlyKeys
		}
		for {
			page, err := c.page(ctx, from, append(options[:len(options):len(options)], clientv3.WithRev(rev), clientv3.WithLimit(limit))...)
			if isTooLarge(err) && limit > 1 {
				// Etcd has read it all to be told so: two tries are better than ten.
				limit = max(1, limit/8)
				continue
			}
			if err != nil {
				yield(replica.KV{}, readError(r.Prefix, rev, err))
				return
			}
			bytes := 0
			for _, kv := range page.Kvs {
				bytes += len(kv.Key) + len(kv.Value)
				if !yield(keyValue(kv), nil) {
					return
				}
			}
			if !page.More || len(page.Kvs) == 0 {
				return
			}
			if rev == 0 {
				rev = page.Header.Revision
			}
			if !r.KeysOnly {
				// At most twice as many: values of one size are followed by larger ones.
				limit = min(mostKeys, 2*limit, max(1, int64(len(page.Kvs))*pageBytes/int64(max(1, bytes))))
			}
			from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
		}
	}
}

// pageTime bounds one answer of a read. The client would try again for minutes on an
// etcd without a quorum, and for ever on one that is not there.
const pageTime = 30 * time.Second

func (c *Client) page(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	return c.etcd.Get(ctx, key, options...)
}

// isTooLarge tells an answer that the transport did not take; etcd's own errors of
// the same code are about writes.
func isTooLarge(err error) bool {
	var known rpctypes.EtcdError
	return err != nil && !errors.As(err, &known) && status.Code(err) == codes.ResourceExhausted
}

// Values reads keys at one revision, in one request unless their values are too large for one answer. Keys that did not exist then
// are left out; the order is that of the keys given. More keys than the server's
// limit of operations are an error of the caller.
func (c *Client) Values(ctx context.Context, rev int64, keys []string) ([]replica.KV, error) {
	return c.these(ctx, keys, clientv3.WithRev(rev))
}

// Keys is Values without the values.
func (c *Client) Keys(ctx context.Context, rev int64, keys []string) ([]replica.KV, error) {
	return c.these(ctx, keys, clientv3.WithRev(rev), clientv3.WithKeysOnly())
}

func (c *Client) these(ctx context.Context, keys []string, options ...clientv3.OpOption) ([]replica.KV, error) {
	gets := make([]clientv3.Op, 0, len(keys))
	for _, key := range keys {
		gets = append(gets, clientv3.OpGet(key, options...))
	}
	if len(gets) == 0 {
		return nil, nil
	}
	page, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	answer, err := c.etcd.Txn(page).Then(gets...).Commit()
	if isTooLarge(err) && len(keys) > 1 {
		var kvs []replica.KV
		for some := range slices.Chunk(keys, (len(keys)+7)/8) {
			part, err := c.these(ctx, some, options...)
			if err != nil {
				return nil, err
			}
			kvs = append(kvs, part...)
		}
		return kvs, nil
	}
	if err != nil {
		return nil, readError(fmt.Sprintf("%d keys", len(keys)), gets[0].Rev(), err)
	}
	kvs := make([]replica.KV, 0, len(keys))
	for _, response := range answer.Responses {
		for _, kv := range response.GetResponseRange().GetKvs() {
			kvs = append(kvs, keyValue(kv))
		}
	}
	return kvs, nil
}

func readError(what string, rev int64, err error) error {
	if errors.Is(err, rpctypes.ErrCompacted) {
		return &CompactedError{Rev: rev}
	}
	return fmt.Errorf("cannot read %s from etcd at revision %d: %w", what, rev, err)
}

func keyValue(kv *mvccpb.KeyValue) replica.KV {
	return replica.KV{Key: string(kv.Key), Value: kv.Value, Create: kv.CreateRevision, Mod: kv.ModRevision}
}
