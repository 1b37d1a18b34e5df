package run

import (
	"context"
	"sync"
)

// A barrier blocks callers until the given number has arrived. It can be used repeatedly.
type barrier struct {
	mutex sync.Mutex
	size  int
	here  int
	open  chan struct{} // closed when all have arrived
}

func newBarrier(size int) *barrier { return &barrier{size: size, open: make(chan struct{})} }

// wait returns when all callers have arrived, or when ctx ends.
func (b *barrier) wait(ctx context.Context) error {
	b.mutex.Lock()
	open := b.open
	if b.here++; b.here == b.size {
		b.here, b.open = 0, make(chan struct{})
		close(open)
	}
	b.mutex.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
