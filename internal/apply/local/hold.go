package local

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/journal"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Hold takes the site's lock, and says where its state is kept while nodes of it may be on this machine. The tmpfs with what nodes see of the host
// stays in memory meanwhile.
func (h *Host) Hold(_ context.Context, by host.Holder) (letGo func(), err error) {
	key := h.Site.Key()
	if err := h.Dirs.Close(key); err != nil {
		return nil, err
	}
	evict, err := host.HoldInMemory(h.Dirs.Run)
	if err != nil {
		return nil, err
	}
	lock, err := host.TakeLock(h.Dirs.Lock(key), by)
	if err != nil {
		evict()
		return nil, err
	}
	if err := h.Dirs.Claim(key); err != nil {
		lock.Release()
		evict()
		return nil, err
	}
	return func() {
		h.Dirs.Yield(key)
		lock.Release()
		evict()
	}, nil
}

// Journal opens the site's journal for writing.
func (h *Host) Journal() (apply.Journal, error) {
	j, err := journal.Open(h.Dirs.Journal(h.Site.Key()))
	if err != nil {
		return nil, err
	}
	return j, nil
}

// Entries reads the site's journal.
func (h *Host) Entries() (all []journal.Entry, damaged []int, err error) {
	return journal.Read(h.Dirs.Journal(h.Site.Key()))
}

// Redact hides the values of secrets.
func (h *Host) Redact(text string) string { return h.Keys.Redact(text) }

// Runner gives the way into a running node.
func (h *Host) Runner(n *spec.Node) (host.Runner, error) {
	e, err := h.engine(n)
	if err != nil {
		return nil, err
	}
	return e.Runner(engine.RefOf(n)), nil
}

// engine gives the engine that a node wants.
func (h *Host) engine(n *spec.Node) (engine.Engine, error) {
	if e, ok := h.Engines[n.Engine]; ok {
		return e, nil
	}
	return nil, problem.New(problem.Unable, "node %s wants the engine %q, which this host does not have", n.Name, n.Engine)
}
