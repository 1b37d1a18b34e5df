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

// maxPidfds limits how many processes are held to be killed. Each needs an open file.
const maxPidfds = 256

// KillContext returns a context for killing processes of the group. It ends with ctx or after
// killTimeout.
func (g Group) KillContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, killTimeout, survivorsError{g})
}

// survivorsError is the error for processes of a group that still run although they were killed.
type survivorsError struct{ g Group }

func (s survivorsError) Error() string {
	return fmt.Sprintf("processes have not ended %v after they were killed: %s", killTimeout, formatPIDs(s.g.Processes()))
}

// formatPIDs returns the first few process ids, for a message.
func formatPIDs(pids []int) string {
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
	return g.KillMatching(ctx, func(int) bool { return true })
}

// KillMatching kills the processes in the group for which doomed returns true. It waits until they
// have ended, or for killTimeout. A frozen process does not end, so KillMatching thaws the group in
// each round: processes in it may freeze it again.
func (g Group) KillMatching(ctx context.Context, doomed func(pid int) bool) error {
	ctx, cancel := g.KillContext(ctx)
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
		for some := range slices.Chunk(inside, maxPidfds) {
			if err := g.kill(ctx, some); err != nil {
				return err
			}
		}
		if err := g.ThawAll(ctx); err != nil {
			return err
		}
		if err := host.Sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// kill sends SIGKILL to processes. It holds them first and then checks that they are still in the
// group, because a process may have ended and its id may be another's. It skips this process: a
// thread that failed to start a process in the group leaves the group anyway.
func (g Group) kill(ctx context.Context, pids []int) error {
	held := map[int]process.Handle{}
	for _, pid := range pids {
		if pid == os.Getpid() {
			continue
		}
		if h, err := process.Open(pid); err == nil {
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
