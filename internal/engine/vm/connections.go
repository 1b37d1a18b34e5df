package vm

import (
	"context"
	"sync"

	"orrery/internal/engine"
)

// Connections are this process's connections to guests. Each guest has one, for all requests.
type Connections[C connection] struct {
	mutex sync.Mutex
	all   map[engine.Ref]*slot[C]
}

type connection interface {
	Ping(ctx context.Context) error
	Close() error
}

// slot holds the connection to one guest. Its mutex is locked while the connection is being made.
type slot[C connection] struct {
	mutex sync.Mutex
	made  *C
}

// Get returns the connection to a guest. It connects if there is no connection or the connection has
// ended.
func (a *Connections[C]) Get(ctx context.Context, ref engine.Ref, connect func(context.Context) (C, error)) (C, error) {
	s := a.slot(ref)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.made != nil {
		if (*s.made).Ping(ctx) == nil {
			return *s.made, nil
		}
		s.close() // the guest has rebooted
	}
	c, err := connect(ctx)
	if err == nil {
		s.made = &c
	}
	return c, err
}

func (a *Connections[C]) slot(ref engine.Ref) *slot[C] {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.all == nil {
		a.all = map[engine.Ref]*slot[C]{}
	}
	if a.all[ref] == nil {
		a.all[ref] = &slot[C]{}
	}
	return a.all[ref]
}

// Disconnect closes the connection to a guest.
func (a *Connections[C]) Disconnect(ref engine.Ref) {
	s := a.slot(ref)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.close()
}

func (s *slot[C]) close() {
	if s.made != nil {
		_ = (*s.made).Close()
		s.made = nil
	}
}
