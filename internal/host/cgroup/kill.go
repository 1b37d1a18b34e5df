package cgroup

import (
	"context"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/process"
)

// Kill kills all processes in the group, and comes back when they have ended. What is frozen does not end, and so goes on first.
func (g Group) Kill(ctx context.Context) error {
	return g.KillThose(ctx, func(int) bool { return true })
}

// KillThose kills some processes in the group.
func (g Group) KillThose(ctx context.Context, doomed func(pid int) bool) error {
	for {
		inside := slices.DeleteFunc(g.Processes(), func(pid int) bool { return !doomed(pid) })
		if len(inside) == 0 {
			return nil
		}
		if g.Frozen() {
			if err := g.SetFrozen(false); err != nil {
				return err
			}
		}
		for _, pid := range inside {
			if err := g.kill(pid); err != nil {
				return err
			}
		}
		if err := host.Pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// kill kills a process if it is in the group when it is held: it may have ended, and another have been given its number. A thread of ours that was about to start one in
// there, and could not, leaves by itself.
func (g Group) kill(pid int) error {
	if pid == os.Getpid() {
		return nil
	}
	held, err := process.Hold(pid)
	if err != nil {
		return nil
	}
	defer held.Close()
	if !slices.Contains(g.Processes(), pid) {
		return nil
	}
	return held.Send(unix.SIGKILL)
}
