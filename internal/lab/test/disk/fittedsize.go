package disk

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"orrery/internal/lab/test"
)

// A fittedSize is the file size with which bonnie++ reports all its rates in all places. bonnie++
// reports no rate for a phase shorter than half a second. Without a larger file, a ratio would be
// based only on the slow rounds.
type fittedSize struct {
	mutex sync.Mutex
	now   test.Bytes
	tried map[string]test.Bytes // the size with which each place was tried last
}

// minPhaseSeconds is the desired minimum duration of each phase, in seconds. It is well above the half second
// from which bonnie++ reports a rate.
const minPhaseSeconds = 0.8

// maxFitTime limits how long bonnie++ may take before the file is no longer enlarged. A disk may
// read from a cache and write slowly.
const maxFitTime = 20 * time.Second

// growthFactor is the factor by which a file that is too small is enlarged.
const growthFactor = 2

// size returns the current file size, which is at least that of the options.
func (f *fittedSize) size(least test.Bytes) test.Bytes {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return max(f.now, least)
}

// enlargeFile enlarges the file until no phase in a place is too short, up to the size limit and the free
// space. A phase that is still too short has a label in the trials.
func (b *bonnie) enlargeFile(ctx context.Context, t *test.Trial, at workDir) error {
	for {
		size := b.size(b.Size)
		b.mutex.Lock()
		known := b.tried[cacheKey(t)] == size
		b.mutex.Unlock()
		if known || size == b.MaxSize {
			return nil
		}
		began := time.Now()
		// the number of single characters is the same for any file size
		marks, err := b.runOnce(ctx, t, at, size, false)
		if tooFast := (*fastError)(nil); err != nil && !errors.As(err, &tooFast) {
			return err
		}
		larger := min(growthFactor*size, b.MaxSize)
		if err == nil && !marks.hasShortPhase(size) || time.Since(began) > maxFitTime ||
			b.checkSpace(ctx, t, at.dir, larger) != nil {
			larger = size
		}
		b.mutex.Lock()
		if b.tried == nil {
			b.tried = map[string]test.Bytes{}
		}
		b.tried[cacheKey(t)] = size
		b.now = max(b.now, larger)
		b.mutex.Unlock()
	}
}

// hasShortPhase reports whether a phase that passes through the whole file took too little time.
func (m *bonnieMarks) hasShortPhase(size test.Bytes) bool {
	return slices.ContainsFunc(blockColumns, func(c column) bool {
		if c.unit != bytesPerSecond {
			return false // the number of seeks is the same for any file size
		}
		rate, ok := m.rates[c.figure]
		return !ok || float64(size)/rate < minPhaseSeconds
	})
}
