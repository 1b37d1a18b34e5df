package lxc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/process"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// patience is how long what a killed run has begun may take to end.
const patience = 30 * time.Second

// Sweep lets nodes go on that a killed run froze, waits for starts and stops that it left under way, kills its commands, and
// removes what it left beside the nodes.
func (e *Engine) Sweep(ctx context.Context, site string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, problem.New(problem.Failed,
		"processes of a run of site %s that was killed are still at work", site).Try("end those processes and run the same command again"))
	defer cancel()
	if err := e.sweepFrost(site); err != nil { // first: what is frozen neither stops nor ends
		return err
	}
	for {
		starting, err := e.orphans(site)
		if err != nil {
			return err
		}
		if !starting {
			break
		}
		if err := host.Pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	err := e.sweepStops(ctx, site)
	return errors.Join(err, e.Nodes.Sweep(site))
}

// sweepFrost lets nodes go on that were frozen by us. Those that somebody else froze have no mark, and stay as they are.
func (e *Engine) sweepFrost(site string) error {
	found, err := e.Found(site)
	for _, f := range found {
		c := e.container(engine.RefOf(&f.Record.Node))
		if _, none := os.Stat(c.freezing()); none == nil {
			err = errors.Join(err, c.thaw())
		}
	}
	return err
}

// sweepStops lets nodes that were shutting down come to the end of it. A monitor whose init has ended is about to end, too.
func (e *Engine) sweepStops(ctx context.Context, site string) error {
	return e.Each(site, func(r *nodedir.Record) error {
		c := e.container(engine.RefOf(&r.Node))
		if tree.Exists(c.starting()) {
			return c.abandon(ctx, r)
		}
		if !tree.Exists(c.stopping()) && (c.monitor() == 0 || c.running()) {
			return nil
		}
		if err := c.powerOff(ctx); err != nil {
			return err
		}
		_ = os.Remove(c.stopping())
		return nil
	})
}

// abandon ends a node whose starter was killed: it may be about to fail.
func (c container) abandon(ctx context.Context, r *nodedir.Record) error {
	if err := c.kill(ctx); err != nil {
		return err
	}
	if err := c.clear(ctx, r); err != nil {
		return err
	}
	return os.Remove(c.starting())
}

// orphans kills the commands in nodes of a site whose caller has died, and reports whether some of them, or starts of nodes, are
// still under way.
func (e *Engine) orphans(site string) (busy bool, err error) {
	starting, commands, err := leftovers(process.Host, e.Top(site))
	// lxc-attach ends by itself when what it has started in the node has ended, and buries that. Were it killed as well, a dead
	// process would be left in the node, for which systemd waits when it shuts down.
	for _, pid := range commands {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return starting || len(commands) > 0, err
}

// leftovers looks for what killed runs have left at work on the nodes in a directory: whether any is being started, and the processes
// that end the commands whose caller has died.
func leftovers(p process.Table, nodes string) (starting bool, commands []int, err error) {
	tasks, err := p.Tasks()
	if err != nil {
		return false, nil, err
	}
	for _, t := range tasks {
		if filepath.Dir(t.Option("--lxcpath")) != nodes {
			continue
		}
		switch t.Program() {
		case "lxc-start":
			starting = true
		case "lxc-attach":
			// A command has a process group of its own, with all that it started; a user's terminal has no mark, and ends by itself.
			if t.Group == t.PID && orphaned(p, t) {
				commands = append(commands, groupOf(p, t.PID)...)
			}
		}
	}
	return starting, commands, nil
}

// groupOf gives the processes of the group that one leads, but that one only if it is alone. They are those of a node.
func groupOf(p process.Table, leader int) []int {
	entries, err := os.ReadDir(string(p))
	if err != nil {
		return nil
	}
	var inside []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == leader {
			continue
		}
		if fields := p.Stat(pid); len(fields) > 5-3 && fields[5-3] == strconv.Itoa(leader) {
			inside = append(inside, pid)
		}
	}
	if len(inside) == 0 {
		return []int{leader}
	}
	return inside
}

// caller marks a command in a node, in the environment of its lxc-attach, with the process that waits for it.
const caller = "ORRERY_CALLER="

// orphaned reports whether the process that waited for a command has ended, so that another one has inherited it.
func orphaned(p process.Table, t process.Task) bool {
	environment, err := os.ReadFile(p.File(t.PID, "environ"))
	if err != nil {
		return false
	}
	for pair := range strings.SplitSeq(string(environment), "\x00") {
		if waited, marked := strings.CutPrefix(pair, caller); marked {
			return waited != strconv.Itoa(t.Parent)
		}
	}
	return false // not one of ours, or it only just begins
}
