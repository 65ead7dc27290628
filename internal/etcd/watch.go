package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// StalledError: the server has not answered for several requests of progress.
// It, or the network, is stuck without an error (M-5).
type StalledError struct{ Asked int }

func (e *StalledError) Error() string {
	return fmt.Sprintf("etcd has answered none of %d requests for the progress of a watch; connect again, if possible to another member (M-5)", e.Asked)
}

// mostUnanswered is how many requests of progress may go without any answer.
const mostUnanswered = 10

// WatchFrom says what to watch.
type WatchFrom struct {
	Prefix string
	// End makes it a range from Prefix to before End; empty means all keys that
	// begin with Prefix.
	End string
	// NoPrevious leaves out what values were before.
	NoPrevious bool
	Rev        int64 // the first revision to deliver
	// Progress is how often an idle server is asked how far it is; 0 means each
	// second. That is what makes the lag of a quiet primary a number.
	Progress time.Duration
}

// Watch delivers all changes in their order until ctx ends, deliver fails, or
// the watch does. The error is what ended it, never nil: *CompactedError,
// *StalledError, that of deliver, or another one.
//
// The member must have a leader: a member that is cut off from the others would
// be silent for ever. A response never splits a revision: the server cuts its
// batches between revisions, and the client puts fragments of one together.
func (c *Client) Watch(ctx context.Context, w WatchFrom, deliver func(replica.Batch) error) error {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	defer cancel(nil)
	if w.Progress == 0 {
		w.Progress = time.Second
	}
	// While no endpoint answers, the client takes no request, and returns from here
	// only when the context ends.
	opening := time.AfterFunc(mostUnanswered*w.Progress, func() { cancel(&StalledError{Asked: mostUnanswered}) })
	responses := c.watches.Watch(ctx, w.Prefix, w.options()...)
	opening.Stop()
	tick := time.NewTicker(w.Progress)
	defer tick.Stop()
	unanswered := 0
	for {
		select {
		case response, open := <-responses:
			unanswered = 0
			if err := watchError(ctx, w, response, open); err != nil {
				return err
			}
			if batch := batchOf(response); batch.Through > 0 {
				if err := deliver(batch); err != nil {
					return err
				}
			}
		case <-tick.C:
			if unanswered == mostUnanswered {
				return &StalledError{Asked: unanswered}
			}
			unanswered++
			if err := c.ask(ctx, w.Progress); err != nil {
				return fmt.Errorf("cannot ask etcd for the progress of a watch: %w", err)
			}
		}
	}
}

// ask requests the progress of all watches of a context. One that the client does
// not even take, because it looks for an endpoint, counts as one without an answer.
func (c *Client) ask(ctx context.Context, most time.Duration) error {
	short, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := c.watches.RequestProgress(short)
	if ctx.Err() == nil && short.Err() != nil {
		return nil
	}
	return err
}

func (w WatchFrom) options() []clientv3.OpOption {
	options := []clientv3.OpOption{clientv3.WithRev(w.Rev), clientv3.WithProgressNotify(), clientv3.WithFragment(), clientv3.WithCreatedNotify()}
	if w.End == "" {
		options = append(options, clientv3.WithPrefix())
	} else {
		options = append(options, clientv3.WithRange(w.End))
	}
	if !w.NoPrevious {
		options = append(options, clientv3.WithPrevKV())
	}
	return options
}

func watchError(ctx context.Context, w WatchFrom, response clientv3.WatchResponse, open bool) error {
	switch {
	case response.CompactRevision != 0:
		return &CompactedError{Rev: w.Rev, Oldest: response.CompactRevision}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case response.Err() != nil:
		return fmt.Errorf("the watch of %s from revision %d has ended: %w", w.Prefix, w.Rev, response.Err())
	case !open:
		return fmt.Errorf("the watch of %s from revision %d has ended without a reason; begin it again", w.Prefix, w.Rev)
	}
	return nil
}

// batchOf groups events by revision. What a response is complete for is its
// last event; only a progress notification speaks for the header's revision.
func batchOf(response clientv3.WatchResponse) replica.Batch {
	var batch replica.Batch
	if response.IsProgressNotify() {
		batch.Through = response.Header.Revision
		return batch
	}
	for _, event := range response.Events {
		rev := event.Kv.ModRevision
		if n := len(batch.Revisions); n == 0 || batch.Revisions[n-1].Rev != rev {
			batch.Revisions = append(batch.Revisions, replica.Revision{Rev: rev})
		}
		last := &batch.Revisions[len(batch.Revisions)-1]
		e := replica.Event{KV: keyValue(event.Kv), Deleted: event.Type == clientv3.EventTypeDelete}
		if event.PrevKv != nil {
			// Not nil even when it is empty: nil says that it is not known.
			e.Prev = append([]byte{}, event.PrevKv.Value...)
		}
		last.Events = append(last.Events, e)
		batch.Through = rev
	}
	return batch
}
