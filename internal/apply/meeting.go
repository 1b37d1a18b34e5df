package apply

import (
	"context"
	"sync"
	"time"
)

// A meeting is when several hosts do the same at once.
type meeting struct {
	margin time.Duration // for the last of them to hear of it
	mutex  sync.Mutex
	at     time.Time
}

// moment returns when, by the clock of this machine: for all who ask before that, it is the same.
func (m *meeting) moment() time.Time {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if now := time.Now(); now.After(m.at) {
		m.at = now.Add(m.margin)
	}
	return m.at
}

// leastMargin is enough for hosts in one room.
const leastMargin = 20 * time.Millisecond

// Meet lets the hosts move links at one moment from now on. It asks each for its clock.
func (f *Fleet) Meet(ctx context.Context) error {
	if len(f.All) < 2 {
		return nil
	}
	took := make([]time.Duration, len(f.All))
	err := f.Each(func(i int, h *Steered) (err error) {
		h.ahead, took[i], err = h.Runs.Clock(ctx)
		return err
	})
	together := &meeting{margin: leastMargin}
	for i, h := range f.All {
		together.margin = max(together.margin, 4*took[i])
		h.meets = together
	}
	together.margin = min(together.margin, time.Second)
	return err
}
