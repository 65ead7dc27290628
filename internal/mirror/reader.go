package mirror

import (
	"context"
	"iter"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

const (
	// inFlight is how many requests are ahead of the one that is written: enough
	// to hide the way to the primary, little enough that four of them are small.
	inFlight = 4
	// wantedBytes of one answer. Sizes are not known before a value is read, so
	// the number of keys follows from the answer before.
	wantedBytes = 1 << 20
	firstKeys   = 32
	mostKeys    = 1000
)

// placedKV is a key of the index with its value; found is false when it has none
// at that revision, which does not happen.
type placedKV struct {
	replica.Place
	Value []byte
	found bool
}

// reader reads values at one revision in the order of places.
type reader struct {
	client *etcd.Client
	rev    int64
	ops    int
}

type answer struct {
	places []replica.Place
	kvs    []replica.KV
	err    error
}

// values reads ahead. It ends with the first error.
func (r *reader) values(ctx context.Context, places iter.Seq2[replica.Place, error]) iter.Seq2[placedKV, error] {
	return func(yield func(placedKV, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		next, stop := iter.Pull2(places)
		defer stop()
		size := firstKeys
		var flying []chan answer
		launch := func() {
			batch, err := take(next, min(size, r.ops, mostKeys))
			if len(batch) == 0 && err == nil {
				return
			}
			result := make(chan answer, 1)
			flying = append(flying, result)
			if err != nil {
				result <- answer{err: err}
				return
			}
			go func() { result <- r.read(ctx, batch) }() // ends with ctx; the channel takes its answer
		}
		for range inFlight {
			launch()
		}
		for len(flying) > 0 {
			got := <-flying[0]
			flying = flying[1:]
			size = sizeAfter(got)
			launch()
			if !got.yield(yield) {
				return
			}
		}
	}
}

func take(next func() (replica.Place, error, bool), n int) (batch []replica.Place, err error) {
	for len(batch) < n {
		place, err, ok := next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		batch = append(batch, place)
	}
	return batch, nil
}

func (r *reader) read(ctx context.Context, places []replica.Place) answer {
	keys := make([]string, len(places))
	for i, p := range places {
		keys[i] = p.Key
	}
	kvs, err := r.client.Values(ctx, r.rev, keys)
	return answer{places, kvs, err}
}

func sizeAfter(got answer) int {
	bytes := 0
	for _, kv := range got.kvs {
		bytes += len(kv.Key) + len(kv.Value)
	}
	// At most twice as many: values of one size are followed by larger ones.
	return max(1, min(2*len(got.places), len(got.kvs)*wantedBytes/max(1, bytes)))
}

// yield pairs places with values; keys that did not exist are left out of an
// answer.
func (a answer) yield(yield func(placedKV, error) bool) bool {
	if a.err != nil {
		yield(placedKV{}, a.err)
		return false
	}
	at := 0
	for _, place := range a.places {
		read := placedKV{Place: place}
		if at < len(a.kvs) && a.kvs[at].Key == place.Key {
			read.Value, read.found = a.kvs[at].Value, true
			at++
		}
		if !yield(read, nil) {
			return false
		}
	}
	return true
}
