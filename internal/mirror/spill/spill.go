// Package spill keeps the places of all keys of a copy sorted, in memory that
// does not grow with their number: what is beyond a few MiB goes, sorted, into
// temporary files, and is merged when it is read.
package spill

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// defaultBytes is how much is kept in memory. A place of an average key takes
// about 130 bytes there, so 500,000 of them are written in 16 runs.
const defaultBytes = 4 << 20

// placeBytes is what a place takes in memory beside its key.
const placeBytes = 40

// Index is a replica.Index. The caller closes it.
type Index struct {
	// Dir is where the files lie; empty means the system's folder for such.
	Dir string
	// Bytes is how much is kept in memory; 0 means 4 MiB.
	Bytes int

	held  []replica.Place
	bytes int
	runs  []*os.File
	// Keys is how many there are.
	Keys int
}

// Add is called once for each key, in any order.
func (x *Index) Add(p replica.Place) error {
	if x.Bytes == 0 {
		x.Bytes = defaultBytes
	}
	x.held = append(x.held, p)
	x.Keys++
	if x.bytes += placeBytes + len(p.Key); x.bytes < x.Bytes {
		return nil
	}
	return x.spill()
}

// spill writes what is held as a sorted run. The file has no name any more: it
// goes with the process, however that ends.
func (x *Index) spill() error {
	slices.SortFunc(x.held, replica.Place.Compare)
	file, err := os.CreateTemp(x.Dir, "lockstep-index-")
	if err != nil {
		return fmt.Errorf("cannot put the index of a copy into a file: %w; set spillDir to a folder with space", err)
	}
	x.runs = append(x.runs, file)
	if err := os.Remove(file.Name()); err != nil {
		return err
	}
	w := bufio.NewWriterSize(file, 64<<10)
	var buffer []byte
	for _, p := range x.held {
		buffer = binary.AppendUvarint(buffer[:0], uint64(p.Rank))
		buffer = binary.AppendUvarint(buffer, uint64(p.Depth))
		buffer = binary.AppendUvarint(buffer, uint64(len(p.Key)))
		if _, err := w.Write(append(buffer, p.Key...)); err != nil {
			return fmt.Errorf("cannot put the index of a copy into a file: %w; set spillDir to a folder with space", err)
		}
	}
	x.held, x.bytes = x.held[:0], 0
	return w.Flush()
}

// After yields the places behind one, sorted.
func (x *Index) After(after replica.Place) iter.Seq2[replica.Place, error] {
	runs := make([]iter.Seq2[replica.Place, error], 0, len(x.runs)+1)
	for _, file := range x.runs {
		runs = append(runs, run(file, after))
	}
	slices.SortFunc(x.held, replica.Place.Compare)
	return replica.Merge(append(runs, held(x.held, after))...)
}

func held(places []replica.Place, after replica.Place) iter.Seq2[replica.Place, error] {
	return func(yield func(replica.Place, error) bool) {
		for _, p := range places {
			if p.Compare(after) > 0 && !yield(p, nil) {
				return
			}
		}
	}
}

func run(file *os.File, after replica.Place) iter.Seq2[replica.Place, error] {
	return func(yield func(replica.Place, error) bool) {
		r := bufio.NewReaderSize(io.NewSectionReader(file, 0, 1<<62), 32<<10)
		for {
			p, err := read(r)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(p, fmt.Errorf("cannot read the index of a copy: %w", err))
				return
			}
			if p.Compare(after) > 0 && !yield(p, nil) {
				return
			}
		}
	}
}

// read is one place; io.EOF when there is none any more.
func read(r *bufio.Reader) (replica.Place, error) {
	rank, err := binary.ReadUvarint(r)
	if err != nil {
		return replica.Place{}, err
	}
	depth, err1 := binary.ReadUvarint(r)
	length, err2 := binary.ReadUvarint(r)
	if err := errors.Join(err1, err2); err != nil {
		return replica.Place{}, io.ErrUnexpectedEOF
	}
	key := make([]byte, length)
	if _, err := io.ReadFull(r, key); err != nil {
		return replica.Place{}, io.ErrUnexpectedEOF
	}
	return replica.Place{Rank: int64(rank), Depth: int(depth), Key: string(key)}, nil
}

// Close gives the files back.
func (x *Index) Close() error {
	var errs []error
	for _, file := range x.runs {
		errs = append(errs, file.Close())
	}
	x.runs, x.held = nil, nil
	return errors.Join(errs...)
}
