package apply

import (
	"context"
	"sync"
	"time"
)

// A sharedStart is a moment at which several hosts act together.
type sharedStart struct {
	margin time.Duration // time for all hosts to receive the request
	mutex  sync.Mutex
	at     time.Time
}

// next returns the moment to act, by the clock of this machine. It is the same for all callers
// before that moment.
func (m *sharedStart) next() time.Time {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if now := time.Now(); now.After(m.at) {
		m.at = now.Add(m.margin)
	}
	return m.at
}

// minStartMargin is enough for hosts in the same room.
const minStartMargin = 20 * time.Millisecond

// MeasureClocks makes the hosts move links at the same moment from now on. It asks each host for its clock.
func (f *Fleet) MeasureClocks(ctx context.Context) error {
	if len(f.All) < 2 {
		return nil
	}
	took := make([]time.Duration, len(f.All))
	err := f.ForEach(func(i int, h *HostClient) (err error) {
		h.ahead, took[i], err = h.Runs.Clock(ctx)
		return err
	})
	together := &sharedStart{margin: minStartMargin}
	for i, h := range f.All {
		together.margin = max(together.margin, 4*took[i])
		h.meets = together
	}
	together.margin = min(together.margin, time.Second)
	return err
}
