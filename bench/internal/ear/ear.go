// Package ear hears a watch as an importer's cache does, and counts its bytes
// instead of reading them.
package ear

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Encodings of a watch: built-in kinds travel as protobuf, custom resources as
// JSON.
const (
	Protobuf = "application/vnd.kubernetes.protobuf;stream=watch,application/json"
	JSON     = "application/json"
)

// Ears are several watches of one client.
type Ears struct {
	cancel context.CancelFunc
	work   sync.WaitGroup
	bytes  atomic.Int64
	mu     sync.Mutex
	fault  error
}

// Watch is what to watch: the path of a list, how it is encoded, and selectors.
type Watch struct {
	Path, Encoding string
	Label, Field   string
}

// Open opens all watches, each of which begins with what is there, as those of
// informers do.
func Open(ctx context.Context, client rest.Interface, watches ...Watch) (*Ears, error) {
	ctx, cancel := context.WithCancel(ctx)
	e := &Ears{cancel: cancel}
	for _, w := range watches {
		request := client.Get().AbsPath(w.Path).SetHeader("Accept", w.Encoding).
			Param("watch", "true").Param("allowWatchBookmarks", "true").
			Param("sendInitialEvents", "true").Param("resourceVersionMatch", "NotOlderThan")
		if w.Label != "" {
			request = request.Param("labelSelector", w.Label)
		}
		if w.Field != "" {
			request = request.Param("fieldSelector", w.Field)
		}
		body, err := request.Stream(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot watch %s: %w", w.Path, err), e.Close())
		}
		e.work.Go(func() { e.listen(ctx, w.Path, body) })
	}
	return e, nil
}

func (e *Ears) listen(ctx context.Context, path string, body io.ReadCloser) {
	defer body.Close()
	_, err := io.Copy(counter{&e.bytes}, body)
	if ctx.Err() != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fault = errors.Join(e.fault, fmt.Errorf("the watch of %s ended too early: %w", path, errors.Join(io.ErrUnexpectedEOF, err)))
}

// Bytes heard so far.
func (e *Ears) Bytes() int64 { return e.bytes.Load() }

// Close ends all watches; an error says which had ended before.
func (e *Ears) Close() error {
	e.cancel()
	e.work.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fault
}

type counter struct{ bytes *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}
