package lxc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/enter"
	"orrery/internal/host/process"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// sweepTimeout limits how long Sweep waits for what a killed run has started.
const sweepTimeout = 30 * time.Second

// Sweep thaws nodes that a killed run froze, and waits for starts and stops that it left
// unfinished. It kills the commands of that run, and removes what it left beside the nodes.
func (e *Engine) Sweep(ctx context.Context, site string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sweepTimeout, problem.New(problem.Failed,
		"processes of a killed run of site %s are still running", site).
		Try("end those processes and run the same command again"))
	defer cancel()
	if err := e.sweepFrozen(site); err != nil { // first, because frozen processes neither stop nor end
		return err
	}
	for {
		starting, err := e.killOrphans(site)
		if err != nil {
			return err
		}
		if !starting {
			break
		}
		if err := host.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	err := e.sweepStops(ctx, site)
	return errors.Join(err, e.Nodes.Sweep(site))
}

// sweepFrozen thaws nodes that Orrery froze. Nodes frozen by others have no mark and stay frozen.
func (e *Engine) sweepFrozen(site string) error {
	found, err := e.Found(site)
	for _, f := range found {
		c := e.container(engine.RefOf(&f.Record.Node))
		if _, none := os.Stat(c.freezingFile()); none == nil {
			err = errors.Join(err, c.thaw())
		}
	}
	return err
}

// sweepStops completes the shutdown of nodes that were shutting down. A monitor whose init has
// ended will also end soon.
func (e *Engine) sweepStops(ctx context.Context, site string) error {
	return e.Each(site, func(r *nodedir.Record) error {
		c := e.container(engine.RefOf(&r.Node))
		if tree.Exists(c.startingFile()) {
			return c.endStart(ctx, r)
		}
		if !tree.Exists(c.stoppingFile()) && (c.monitor() == 0 || c.running()) {
			return nil
		}
		if err := c.powerOff(ctx); err != nil {
			return err
		}
		_ = os.Remove(c.stoppingFile())
		return nil
	})
}

// endStart ends a node whose starting run was killed, because its start may still fail.
func (c container) endStart(ctx context.Context, r *nodedir.Record) error {
	if err := c.kill(ctx); err != nil {
		return err
	}
	if err := c.cleanUp(ctx, r); err != nil {
		return err
	}
	return os.Remove(c.startingFile())
}

// killOrphans kills the commands in nodes of a site whose caller has died. It reports whether any such
// commands, or starts of nodes, were still running.
func (e *Engine) killOrphans(site string) (busy bool, err error) {
	busy, err = anyStarting(process.Host, nodedir.SiteDir(e.Dirs, site))
	if err != nil {
		return busy, err
	}
	return busy, e.Each(site, func(r *nodedir.Record) error {
		if enter.KillOrphans(e.container(engine.RefOf(&r.Node)).group()) > 0 {
			busy = true
		}
		return nil
	})
}

// anyStarting reports whether any of the nodes in a directory is being started.
func anyStarting(p process.Table, nodes string) (bool, error) {
	tasks, err := p.Tasks()
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(tasks, func(t process.Task) bool {
		return t.Program() == "lxc-start" && filepath.Dir(t.Option("--lxcpath")) == nodes
	}), nil
}
