// Package agents reaches the agents of virtual machines, whatever runs those: each process of the host has one connection to a machine, for all that it asks of it.
package agents

import (
	"context"
	"sync"

	"orrery/internal/engine"
	"orrery/internal/wire"
)

// Agents are those to which this process has a connection.
type Agents struct {
	mutex sync.Mutex
	all   map[engine.Ref]*slot
}

// slot is the place of one, held while it is being found.
type slot struct {
	mutex sync.Mutex
	agent *wire.Client
}

// Of gives the agent of a machine, which may have to boot yet, and whose sockets are in a directory.
func (a *Agents) Of(ctx context.Context, ref engine.Ref, dir string) (*wire.Client, error) {
	s := a.slot(ref)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.agent != nil {
		if s.agent.Ping(ctx) == nil {
			return s.agent, nil
		}
		_ = s.agent.Close() // the guest has begun anew
		s.agent = nil
	}
	c, err := wire.Enter(ctx, dir)
	if err != nil {
		return nil, err
	}
	s.agent = c
	return c, nil
}

func (a *Agents) slot(ref engine.Ref) *slot {
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

// Leave ends the connection to a machine.
func (a *Agents) Leave(ref engine.Ref) {
	s := a.slot(ref)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.agent != nil {
		_ = s.agent.Close()
		s.agent = nil
	}
}
