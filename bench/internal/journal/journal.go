// Package journal is the complete list of what is written to the etcd of a
// cluster, whoever writes it.
//
// It cannot miss a write. The API server keeps everything it persists in etcd;
// etcd gives every transaction that changes something the next revision; and a
// watch of all keys delivers every change of every revision in order. Between
// therefore checks that no revision is absent from what was received. Counting
// at the API server instead would need its audit log, which costs as much as
// the writes, or its metrics, which do not tell whose request it was. What
// never reaches etcd, a refused request or one that changes nothing, is counted
// by package requests.
package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Write is one change of one key.
type Write struct {
	Revision int64     `json:"revision"`
	At       time.Time `json:"at"`
	// Resource is "endpointslices" or "resourceexports.multicluster.crd.antrea.io";
	// of a key that is not an API object, the key.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Created   bool   `json:"created,omitempty"`
	Deleted   bool   `json:"deleted,omitempty"`
	// Managers are all field managers the object has had, from before or after
	// this write.
	Managers []string `json:"managers,omitempty"`
	// Bytes that etcd was given: key and value.
	Bytes int `json:"bytes"`
	// Changed are the parts of a custom resource that an update changed:
	// "spec", "status", "metadata.annotations.<key>".
	Changed []string `json:"changed,omitempty"`
}

func (w Write) String() string {
	verb := "wrote"
	if w.Deleted {
		verb = "deleted"
	}
	return fmt.Sprintf("%s %s %s %s/%s %v %v", w.At.Format("15:04:05.000"), verb, w.Resource, w.Namespace, w.Name, w.Changed, w.Managers)
}

// Journal records from Open to Close.
type Journal struct {
	etcd   *clientv3.Client
	cancel context.CancelFunc
	ended  chan struct{}

	mu     sync.Mutex
	writes []Write
	head   int64 // all revisions up to this one were received
	first  int64 // the first revision that is recorded
	fault  error
	news   chan struct{}
}

// marker is a key outside the API server's, see Mark.
const marker = "/lockstep-bench/marker"

// Open begins to record. The journal closes the client.
func Open(ctx context.Context, etcd *clientv3.Client) (*Journal, error) {
	now, err := etcd.Get(ctx, marker)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot read etcd: %w", err), etcd.Close())
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	j := &Journal{
		etcd: etcd, cancel: cancel, ended: make(chan struct{}), news: make(chan struct{}),
		head: now.Header.Revision, first: now.Header.Revision + 1,
	}
	// From the empty key on: all there are. The previous value tells what was deleted.
	watch := etcd.Watch(clientv3.WithRequireLeader(ctx), "\x00", clientv3.WithFromKey(), clientv3.WithPrevKV(), clientv3.WithRev(j.first))
	go j.record(watch)
	return j, nil
}

// Close ends the recording.
func (j *Journal) Close() error {
	j.cancel()
	<-j.ended
	return j.etcd.Close()
}

func (j *Journal) record(watch clientv3.WatchChan) {
	defer close(j.ended)
	for response := range watch {
		now := time.Now()
		writes := make([]Write, 0, len(response.Events))
		for _, event := range response.Events {
			writes = append(writes, read(event, now))
		}
		j.mu.Lock()
		for _, w := range writes {
			// Several keys of one transaction share a revision; else the next follows.
			if w.Revision > j.head+1 && j.fault == nil {
				j.fault = fmt.Errorf("revisions %d to %d were not received", j.head+1, w.Revision-1)
			}
			j.head = w.Revision
		}
		j.writes = append(j.writes, writes...)
		if err := response.Err(); err != nil && j.fault == nil {
			j.fault = fmt.Errorf("the watch of etcd ended: %w", err)
		}
		close(j.news)
		j.news = make(chan struct{})
		j.mu.Unlock()
	}
}

func read(event *clientv3.Event, now time.Time) Write {
	w := parse(string(event.Kv.Key))
	w.Revision, w.At, w.Deleted = event.Kv.ModRevision, now, event.Type == mvccpb.DELETE
	w.Created = event.IsCreate()
	w.Managers, w.Bytes = managers(event.PrevKv, event.Kv), len(event.Kv.Key)+len(event.Kv.Value)
	if event.IsModify() {
		w.Changed = changed(event.PrevKv, event.Kv)
	}
	return w
}

// Mark puts a key of its own into etcd, waits until the journal has received
// it, and with it everything before, and returns its revision.
func (j *Journal) Mark(ctx context.Context) (int64, error) {
	put, err := j.etcd.Put(ctx, marker, "")
	if err != nil {
		return 0, fmt.Errorf("cannot mark the journal: %w", err)
	}
	for {
		j.mu.Lock()
		head, news, fault := j.head, j.news, j.fault
		j.mu.Unlock()
		switch {
		case fault != nil:
			return 0, fault
		case head >= put.Header.Revision:
			return put.Header.Revision, nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-j.ended:
			return 0, errors.New("the watch of etcd ended")
		case <-news:
		}
	}
}

// Between lists all writes after one mark and before another. An error means
// that the list would not be complete.
func (j *Journal) Between(from, to int64) ([]Write, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.fault != nil:
		return nil, j.fault
	case from < j.first || to > j.head:
		return nil, fmt.Errorf("the journal holds revisions %d to %d, not %d to %d", j.first, j.head, from, to)
	}
	var found []Write
	for _, w := range j.writes {
		if w.Revision > from && w.Revision < to {
			found = append(found, w)
		}
	}
	return found, nil
}

// Last is when the latest write that counts was received; zero without one.
func (j *Journal) Last(counts func(Write) bool) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := len(j.writes) - 1; i >= 0; i-- {
		if counts(j.writes[i]) {
			return j.writes[i].At
		}
	}
	return time.Time{}
}

// Forget drops what was received before a mark.
func (j *Journal) Forget(before int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, w := range j.writes {
		if w.Revision >= before {
			j.writes = append([]Write(nil), j.writes[i:]...)
			break
		}
	}
	j.first = max(j.first, before)
}
