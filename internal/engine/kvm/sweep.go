package kvm

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"orrery/internal/engine"
	"orrery/internal/problem"
)

// patience is how long what a killed run has begun may take to end.
const patience = 90 * time.Second

// Sweep lets machines go on that a killed run froze, ends those that it was starting, waits for those that it was stopping, and removes what it left
// beside the nodes. Commands in guests end by themselves with whoever gave them: the agent sees to it.
func (e *Engine) Sweep(ctx context.Context, site string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, problem.New(problem.Failed,
		"virtual machines of a run of site %s that was killed are still at work", site).Try("end their processes and run the same command again"))
	defer cancel()
	found, err := e.Found(site)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make([]error, len(found))
	for i, f := range found {
		m := e.machine(engine.RefOf(&f.Record.Node))
		all.Go(func() { errs[i] = e.sweep(ctx, m) })
	}
	all.Wait()
	errs = append(errs, e.Nodes.Sweep(site))
	return errors.Join(errs...)
}

func (e *Engine) sweep(ctx context.Context, m machine) error {
	has := func(mark string) bool { _, err := os.Lstat(mark); return err == nil }
	if has(m.freezing()) || has(m.halted()) { // first: what is frozen neither stops nor ends
		if err := m.thaw(); err != nil {
			return err
		}
	}
	if has(m.moving()) {
		if err := e.resolve(ctx, m); err != nil {
			return err
		}
	}
	switch {
	case has(m.starting()):
		if err := m.group().Kill(ctx); err != nil {
			return err
		}
		if err := e.tidy(ctx, m); err != nil {
			return err
		}
		return os.Remove(m.starting())
	case has(m.stopping()):
		if err := e.powerOff(ctx, m); err != nil {
			return err
		}
		_ = os.Remove(m.stopping())
		return e.tidy(ctx, m)
	}
	return nil
}
