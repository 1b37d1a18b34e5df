package lxc

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/process"
	"orrery/internal/problem"
)

// Stop asks the node's init to power off and, when ctx has a deadline and it passes, kills it. What
// the node has frozen of itself goes on, so that it ends.
func (e *Engine) Stop(ctx context.Context, ref engine.Ref) error {
	c := e.container(ref)
	if err := c.thaw(); err != nil {
		return err
	}
	if err := c.powerOff(ctx); err != nil {
		return problem.New(problem.Failed, "node %s does not stop", ref.Name).At(c.Path()).Because(err)
	}
	cgroup.Remove(c.groups()...)
	if r, err := c.Read(); err == nil {
		return c.links(r).giveBack(ctx)
	}
	return nil
}

// powerOff lets the node shut down. A node that does so looks as if it ran, so a file tells Sweep of it.
func (c container) powerOff(ctx context.Context) error {
	if c.monitor() == 0 {
		return nil
	}
	if err := os.WriteFile(c.stopping(), nil, 0o600); err != nil {
		return err
	}
	err := ctx.Err()
	if err == nil {
		err = c.signal(ctx, unix.Signal(37)) // SIGRTMIN+3, systemd(1): poweroff
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = c.killInit(context.WithoutCancel(ctx)) // within cgroup's own time
	}
	if err != nil {
		return err
	}
	return os.Remove(c.stopping())
}

// killInit kills the node's init, with which all others of the node end, and waits until its
// monitor has cleaned up.
func (p processes) killInit(ctx context.Context) error {
	ctx, cancel := p.group().Killing(ctx)
	defer cancel()
	return orCause(ctx, p.signal(ctx, unix.SIGKILL))
}

// orCause returns an error, or why the context ended if it did.
func orCause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// tell sends a signal to the node's init, if it runs.
func (p processes) tell(s unix.Signal) {
	if init, err := process.Hold(p.init()); err == nil {
		_ = init.Send(s) // it may have ended
		init.Close()
	}
}

// signal sends a signal to the node's init and waits until both it and its monitor, which cleans up
// behind it, have ended. It sends the signal again and again, because an init that has only just
// been started loses it, and because root of the node may freeze some of its processes at any
// moment: init waits for all of them.
func (p processes) signal(ctx context.Context, s unix.Signal) error {
	monitor, first := p.both()
	if monitor == 0 {
		return nil
	}
	watch, err := process.Hold(monitor)
	if err != nil {
		return nil // it has just ended
	}
	defer watch.Close()
	target, err := process.Hold(first)
	if err != nil {
		target = watch // init has ended; its monitor is about to
		s = 0
	} else {
		defer target.Close()
	}
	return watch.UntilEnded(ctx, func(try int) error {
		if try%8 != 0 {
			return nil
		}
		_ = p.group().ThawAll(ctx) // if it cannot, the next try may
		return target.Send(s)
	})
}

// kill ends a node's monitor with all that it has started. The monitor of a start that was cut
// short may wait for somebody who is no more.
func (p processes) kill(ctx context.Context) error {
	monitor := p.monitor()
	if monitor == 0 {
		return nil
	}
	watch, err := process.Hold(monitor)
	if err != nil {
		return nil // it has just ended
	}
	defer watch.Close()
	ctx, cancel := p.group().Killing(ctx)
	defer cancel()
	return orCause(ctx, watch.UntilEnded(ctx, func(int) error {
		for _, pid := range process.Host.Children(monitor) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		_ = p.group().ThawAll(ctx) // if it cannot, the next try may
		return watch.Send(unix.SIGKILL)
	}))
}

// Destroy kills the node, if it runs: whoever wants it to shut down in order stops it first.
func (e *Engine) Destroy(ctx context.Context, ref engine.Ref) error {
	c := e.container(ref)
	r, _ := c.Read()
	if r == nil {
		r = &nodedir.Record{} // it is half made, or not there
	}
	if c.monitor() != 0 { // init may have been killed, and not have ended
		if err := c.thaw(); err != nil {
			return err
		}
		// LXC takes some 16 ms to move each link out of a node that ends. One that is gone need not be
		// moved. Init is told first: if this run is killed in between, no node goes on without its links.
		c.tell(unix.SIGKILL)
		if err := c.links(r).remove(); err != nil {
			return err
		}
		if err := c.killInit(ctx); err != nil {
			return problem.New(problem.Failed, "node %s does not end", ref.Name).At(c.Path()).Because(err)
		}
	}
	if err := c.clear(ctx, r); err != nil {
		return err
	}
	cgroup.RemoveEmpty(ref.Site)
	return e.Remove(ref)
}
