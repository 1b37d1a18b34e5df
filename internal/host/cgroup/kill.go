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

// killTimeout is how long processes may take to end that were killed. One in a system call that the
// kernel does not interrupt, such as on a disk that is lost, may never end. It is a variable, so
// that tests can change it.
var killTimeout = 10 * time.Second

// heldAtOnce is how many processes are held to be killed: each is a file that we have open.
const heldAtOnce = 256

// Killing returns the context in which something is killed that belongs to a group: it ends with
// ctx and after killTimeout.
func (g Group) Killing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, killTimeout, stillThere{g})
}

// stillThere says that processes of a group go on although they were killed.
type stillThere struct{ g Group }

func (s stillThere) Error() string {
	return fmt.Sprintf("processes have not ended %v after they were killed: %s", killTimeout, listed(s.g.Processes()))
}

// listed returns the first of some processes, for a message.
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

// Kill kills all processes in the group and returns when they have ended, or after killTimeout.
func (g Group) Kill(ctx context.Context) error {
	return g.KillThose(ctx, func(int) bool { return true })
}

// KillThose kills some processes in the group and returns when they have ended, or after
// killTimeout. What is frozen does not end, and so is thawed first: each time, since whoever is in
// there may freeze it again.
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

// kill sends SIGKILL to processes that are in the group once they are held: one may have ended, and
// another have been given its number. A thread of ours that was about to start one in there, and
// could not, leaves by itself.
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
