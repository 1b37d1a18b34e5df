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

// Stop asks the node's init to power off. If ctx has a deadline and it passes, Stop kills init. It
// thaws what the node itself has frozen, so that it can end.
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
		return c.returnHardware(ctx, r)
	}
	return c.releaseDevices(ctx)
}

// powerOff shuts the node down. A node that shuts down looks as if it ran, so a file marks it for
// Sweep.
func (c container) powerOff(ctx context.Context) error {
	if c.monitor() == 0 {
		return nil
	}
	if err := os.WriteFile(c.stoppingFile(), nil, 0o600); err != nil {
		return err
	}
	err := ctx.Err()
	if err == nil {
		err = c.signal(ctx, unix.Signal(37)) // SIGRTMIN+3, systemd(1): poweroff
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = c.killInit(context.WithoutCancel(ctx)) // within the timeout of package cgroup
	}
	if err != nil {
		return err
	}
	return os.Remove(c.stoppingFile())
}

// killInit kills the node's init, and thereby all processes of the node. It waits until the monitor
// has cleaned up.
func (p processes) killInit(ctx context.Context) error {
	ctx, cancel := p.group().KillContext(ctx)
	defer cancel()
	return orCause(ctx, p.signal(ctx, unix.SIGKILL))
}

// orCause returns err, or the cause of the context's end if it has ended.
func orCause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// notifyInit sends a signal to the node's init, if it runs.
func (p processes) notifyInit(s unix.Signal) {
	if init, err := process.Open(p.init()); err == nil {
		_ = init.Send(s) // ignore the error: init may have ended
		init.Close()
	}
}

// signal sends a signal to the node's init and waits until init and its monitor, which cleans up,
// have ended. It repeats the signal, because an init that has just been started loses it. It also
// thaws the node each time, because the node's root may freeze processes at any moment, and init
// waits for all of them.
func (p processes) signal(ctx context.Context, s unix.Signal) error {
	monitor, first := p.monitorAndInit()
	if monitor == 0 {
		return nil
	}
	watch, err := process.Open(monitor)
	if err != nil {
		return nil // it has just ended
	}
	defer watch.Close()
	target, err := process.Open(first)
	if err != nil {
		target = watch // init has ended, and its monitor will end soon
		s = 0
	} else {
		defer target.Close()
	}
	return watch.RetryUntilEnded(ctx, func(try int) error {
		if try%8 != 0 {
			return nil
		}
		_ = p.group().ThawAll(ctx) // ignore the error: the next try may succeed
		return target.Send(s)
	})
}

// kill ends a node's monitor and all its children. The monitor of an interrupted start may be
// waiting for a process that no longer exists.
func (p processes) kill(ctx context.Context) error {
	monitor := p.monitor()
	if monitor == 0 {
		return nil
	}
	watch, err := process.Open(monitor)
	if err != nil {
		return nil // it has just ended
	}
	defer watch.Close()
	ctx, cancel := p.group().KillContext(ctx)
	defer cancel()
	return orCause(ctx, watch.RetryUntilEnded(ctx, func(int) error {
		for _, pid := range process.Host.Children(monitor) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		_ = p.group().ThawAll(ctx) // ignore the error: the next try may succeed
		return watch.Send(unix.SIGKILL)
	}))
}

// Destroy kills the node if it runs. Callers that want an orderly shutdown call Stop first.
func (e *Engine) Destroy(ctx context.Context, ref engine.Ref) error {
	c := e.container(ref)
	r, _ := c.Read()
	if r == nil {
		r = &nodedir.Record{} // the node is half made or missing
	}
	if c.monitor() != 0 { // init may have been killed, and not have ended
		if err := c.thaw(); err != nil {
			return err
		}
		// LXC needs some 16 ms to move each link out of a node that ends. Removed links need not be
		// moved. Kill init first: if this run is killed in between, no node continues without its
		// links.
		c.notifyInit(unix.SIGKILL)
		if err := c.links(r).remove(); err != nil {
			return err
		}
		if err := c.killInit(ctx); err != nil {
			return problem.New(problem.Failed, "node %s could not be killed", ref.Name).At(c.Path()).Because(err)
		}
	}
	if err := c.cleanUp(ctx, r); err != nil {
		return err
	}
	cgroup.RemoveEmpty(ref.Site)
	return e.Remove(ref)
}
