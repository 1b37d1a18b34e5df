package cgroup

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/process"
)

// killTimeout limits how long killed processes may take to end. A process in a system call that the
// kernel does not interrupt, such as on a lost disk, may never end. It is a variable, so that tests
// can change it.
var killTimeout = 10 * time.Second

// heldAtOnce limits how many processes are held to be killed. Each needs an open file.
const heldAtOnce = 256

// Killing returns a context for killing processes of the group. It ends with ctx or after
// killTimeout.
func (g Group) Killing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, killTimeout, stillThere{g})
}

// stillThere is the error for processes of a group that still run although they were killed.
type stillThere struct{ g Group }

func (s stillThere) Error() string {
	return fmt.Sprintf("processes have not ended %v after they were killed: %s", killTimeout, listed(s.g.Processes()))
}

// listed returns the first few process ids, for a message.
func listed(pids []int) string {
	const most = 5
	var all []string
	for _, pid := range pids[:min(most, len(pids))] {
		all = append(all, fmt.Sprint(pid))
	}
	if len(pids) > most {
		all = append(all, fmt.Sprintf("and %d more", len(pids)-most))
	}
	return strings.Join(all, ", ")
}

// Kill kills all processes in the group and waits until they have ended, or for killTimeout.
func (g Group) Kill(ctx context.Context) error {
	return g.KillThose(ctx, func(int) bool { return true })
}

// KillThose kills the processes in the group for which doomed returns true. It waits until they
// have ended, or for killTimeout. A frozen process does not end, so KillThose thaws the group in
// each round: processes in it may freeze it again.
func (g Group) KillThose(ctx context.Context, doomed func(pid int) bool) error {
	ctx, cancel := g.Killing(ctx)
	defer cancel()
	for {
		inside, err := g.processes(ctx)
		if err != nil {
			return err
		}
		inside = slices.DeleteFunc(inside, func(pid int) bool { return !doomed(pid) })
		if len(inside) == 0 {
			return nil
		}
		for some := range slices.Chunk(inside, heldAtOnce) {
			if err := g.kill(ctx, some); err != nil {
				return err
			}
		}
		if err := g.ThawAll(ctx); err != nil {
			return err
		}
		if err := host.Pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// kill sends SIGKILL to processes. It holds them first and then checks that they are still in the
// group, because a process may have ended and its id may be another's. It skips this process: a
// thread that failed to start a process in the group leaves the group anyway.
func (g Group) kill(ctx context.Context, pids []int) error {
	held := map[int]process.Held{}
	for _, pid := range pids {
		if pid == os.Getpid() {
			continue
		}
		if h, err := process.Hold(pid); err == nil {
			held[pid] = h
			defer h.Close()
		}
	}
	inside, err := g.processes(ctx)
	if err != nil {
		return err
	}
	for _, pid := range inside {
		h, ok := held[pid]
		if !ok {
			continue
		}
		if err := h.Send(unix.SIGKILL); err != nil {
			return err
		}
	}
	return nil
}
