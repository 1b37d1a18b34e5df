package disk

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"orrery/internal/lab/test"
)

// A fitting is the size of the file with which bonnie++ tells all its rates in all places. It tells
// none for what took less than half a second: the ratio would stand on those rounds alone that were
// slow.
type fitting struct {
	mutex sync.Mutex
	now   test.Bytes
	tried map[string]test.Bytes // the size with which a place was tried last
}

// phase is how long each phase is to take, in seconds. It is well above the half second from which
// bonnie++ tells a rate.
const phase = 0.8

// maxFitting is how long bonnie++ may take with a file that is made larger still. A disk may read
// from a cache and write slowly.
const maxFitting = 20 * time.Second

// growth is by how much a file is made larger whose size is too small.
const growth = 2

// size returns that size, which is at least that of the options.
func (f *fitting) size(least test.Bytes) test.Bytes {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return max(f.now, least)
}

// fit makes the file larger until no phase is too short in a place, as far as it may and there is
// room. One that still is has a label in its trials.
func (b *bonnie) fit(ctx context.Context, t *test.Trial, at floor) error {
	for {
		size := b.size(b.Size)
		b.mutex.Lock()
		known := b.tried[key(t)] == size
		b.mutex.Unlock()
		if known || size == b.MaxSize {
			return nil
		}
		began := time.Now()
		marks, err := b.once(ctx, t, at, size, false) // there are as many single characters in any file
		if tooFast := (*fastError)(nil); err != nil && !errors.As(err, &tooFast) {
			return err
		}
		larger := min(growth*size, b.MaxSize)
		if err == nil && !marks.shorter(size) || time.Since(began) > maxFitting || b.room(ctx, t, at.dir, larger) != nil {
			larger = size
		}
		b.mutex.Lock()
		if b.tried == nil {
			b.tried = map[string]test.Bytes{}
		}
		b.tried[key(t)] = size
		b.now = max(b.now, larger)
		b.mutex.Unlock()
	}
}

// shorter reports whether a phase that goes through the whole file took less than it should.
func (m *bonnieMarks) shorter(size test.Bytes) bool {
	return slices.ContainsFunc(blockColumns, func(c column) bool {
		if c.unit != bytesPerSecond {
			return false // seeks are as many in any file
		}
		rate, ok := m.rates[c.figure]
		return !ok || float64(size)/rate < phase
	})
}
