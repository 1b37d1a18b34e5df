package local

import (
	"context"
	"time"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/journal"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Lock takes the site's lock. It also records for the whole machine in which state directory the
// site is kept, while nodes of it may be on the machine. While the lock is held, the tmpfs stays mounted
// that has the host's files for nodes.
func (h runHost) Lock(ctx context.Context, by host.Holder) (letGo func(), err error) {
	key := h.Key
	lock, err := h.Dirs.LockSite(ctx, key, by)
	if err != nil {
		return nil, err
	}
	evict, err := host.EnsureInMemory(ctx, h.Dirs.Run)
	if err != nil {
		lock.Release()
		return nil, err
	}
	if err := h.Backends.Claims.Claim(ctx, key); err != nil {
		evict()
		lock.Release()
		return nil, err
	}
	return func() {
		h.Backends.Claims.Yield(ctx, key)
		evict()
		lock.Release()
	}, nil
}

// Clock returns zeros, because the host is this machine.
func (h runHost) Clock(context.Context) (ahead, took time.Duration, err error) { return 0, 0, nil }

// OpenJournal opens the site's journal for writing.
func (h runHost) OpenJournal(context.Context) (apply.Journal, error) {
	j, err := journal.Open(h.Dirs.Journal(h.Key))
	if err != nil {
		return nil, err
	}
	return j, nil
}

// ReadJournal reads the site's journal.
func (h runHost) ReadJournal(_ context.Context, runs int) (all []journal.Entry, damaged []int, err error) {
	path := h.Dirs.Journal(h.Key)
	if all, damaged, err = journal.Read(path); err != nil {
		err = problem.New(problem.Failed, "the journal cannot be read").At(path).Because(err)
	}
	return journal.LastRuns(all, runs), damaged, err
}

// Redact hides the values of secrets.
func (h secretHost) Redact(text string) string { return h.Secrets.Redact(text) }

// Runner returns a Runner for a running node.
func (h nodeHost) Runner(n *spec.Node) (host.Runner, error) {
	e, err := h.engine(n)
	if err != nil {
		return nil, err
	}
	return e.Runner(engine.RefOf(n)), nil
}

// Console returns the serial console of a node.
func (h nodeHost) Console(n *spec.Node) (host.Console, error) {
	e, err := h.engine(n)
	if err != nil {
		return nil, err
	}
	if of, ok := e.(engine.ConsoleProvider); ok {
		return of.Console(engine.RefOf(n)), nil
	}
	return nil, problem.New(problem.Unable,
		"node %s has no serial console: its engine is %s, not one of virtual machines", n.Name, n.Engine).At(n.Site).
		Try("orrery shell %s gives a terminal in it, and orrery logs %s shows what it logs", n.Name, n.Name)
}

// Screen returns the screen of a node.
func (h nodeHost) Screen(n *spec.Node) (host.Screen, error) {
	e, err := h.engine(n)
	if err != nil {
		return nil, err
	}
	if of, ok := e.(engine.ScreenProvider); ok {
		return of.Screen(engine.RefOf(n)), nil
	}
	return nil, problem.New(problem.Unable,
		"node %s has no screen: its engine is %s, and those of kvm have one that boot a disk image", n.Name, n.Engine).
		At(n.Site).
		Try("orrery shell %s gives a terminal in it", n.Name)
}
