package lxc

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/engine/cgroup"
	"orrery/internal/engine/nodedir"
	"orrery/internal/problem"
)

// Stop asks the node's init to power off and, when ctx has a deadline and it passes, kills it.
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
		return c.giveBack(ctx, r)
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
		err = c.signal(context.Background(), unix.SIGKILL)
	}
	if err != nil {
		return err
	}
	return os.Remove(c.stopping())
}

// signal sends a signal to the node's init and waits until both it and its monitor, which cleans up behind it, have ended. It
// sends the signal again and again, because an init that has only just been started loses it.
func (c container) signal(ctx context.Context, s unix.Signal) error {
	monitor, first := c.monitor(), c.init()
	if monitor == 0 {
		return nil
	}
	watch, err := unix.PidfdOpen(monitor, 0)
	if err != nil {
		return nil // it has just ended
	}
	defer unix.Close(watch)
	target, err := unix.PidfdOpen(first, 0)
	if err != nil {
		target = watch // init has ended; its monitor is about to
		s = 0
	} else {
		defer unix.Close(target)
	}
	return untilEnded(ctx, watch, func(try int) error {
		if try%8 != 0 {
			return nil
		}
		return send(target, s)
	})
}

// kill ends a node's monitor with all that it has started. The monitor of a start that was cut short may wait for somebody who is no more.
func (c container) kill(ctx context.Context) error {
	monitor := c.monitor()
	if monitor == 0 {
		return nil
	}
	watch, err := unix.PidfdOpen(monitor, 0)
	if err != nil {
		return nil // it has just ended
	}
	defer unix.Close(watch)
	err = untilEnded(ctx, watch, func(int) error {
		for _, pid := range proc.children(monitor) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return send(watch, unix.SIGKILL)
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// send sends a signal to a process, by its pidfd. One that has ended is no error.
func send(pidfd int, s unix.Signal) error {
	if err := unix.PidfdSendSignal(pidfd, s, nil, 0); !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// untilEnded tries something every 50 ms until a process has ended, which is given by its pidfd.
func untilEnded(ctx context.Context, pidfd int, try func(n int) error) error {
	for n := 0; ; n++ {
		if err := try(n); err != nil {
			return err
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 50)
		if ready > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Destroy kills the node, if it runs: whoever wants it to shut down in order stops it first.
func (e *Engine) Destroy(ctx context.Context, ref engine.Ref) error {
	c := e.container(ref)
	r, _ := c.Read()
	if r == nil {
		r = &nodedir.Record{} // it is half made, or not there
	}
	if c.running() {
		if err := c.thaw(); err != nil {
			return err
		}
		if err := c.signal(ctx, unix.SIGKILL); err != nil {
			return problem.New(problem.Failed, "node %s does not end", ref.Name).At(c.Path()).Because(err)
		}
	}
	if err := c.clear(ctx, r); err != nil {
		return err
	}
	cgroup.RemoveEmpty(ref.Site)
	return e.Remove(ref)
}
