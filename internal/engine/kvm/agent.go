package kvm

import (
	"context"
	"sync"

	"orrery/internal/engine"
	"orrery/internal/wire"
)

// An agent is a connection of this process to that of a guest.
type agent = wire.Client

// agents are those that this process has: one for each machine, for all that it asks of it.
type agents struct {
	mutex sync.Mutex
	all   map[engine.Ref]*slot
}

// slot is the place of one, held while it is being found.
type slot struct {
	mutex sync.Mutex
	agent *agent
}

// of gives the agent of a machine, which may have to boot yet.
func (a *agents) of(ctx context.Context, m machine) (*agent, error) {
	s := a.slot(m.ref)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.agent != nil {
		if s.agent.Ping(ctx) == nil {
			return s.agent, nil
		}
		_ = s.agent.Close() // the guest has begun anew
		s.agent = nil
	}
	c, err := wire.Enter(ctx, m.run)
	if err != nil {
		return nil, err
	}
	s.agent = c
	return c, nil
}

func (a *agents) slot(ref engine.Ref) *slot {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.all == nil {
		a.all = map[engine.Ref]*slot{}
	}
	if a.all[ref] == nil {
		a.all[ref] = &slot{}
	}
	return a.all[ref]
}

// leave ends the connection to a machine.
func (a *agents) leave(ref engine.Ref) {
	s := a.slot(ref)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.agent != nil {
		_ = s.agent.Close()
		s.agent = nil
	}
}
