package here

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/apply/remote"
	"orrery/internal/host/doctor"
	"orrery/internal/host/outfit"
	"orrery/internal/host/path"
	"orrery/internal/host/reach"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// HelperVerb is the verb that starts this program on another host.
const HelperVerb = "host-helper"

// helperPrograms are the builds of this program for other hosts.
var helperPrograms reach.Builds

// Reach connects to this program on another host, using the system's ssh.
func (m LocalMachine) Reach(ctx context.Context, h site.Host) (*remote.Link, error) {
	share, err := reach.SharingFromEnv(m.Dirs)
	if err != nil {
		return nil, err
	}
	line, err := reach.Target{Name: h.Name, Address: h.Address}.Dial(ctx, &helperPrograms, share, HelperVerb)
	if err != nil {
		return nil, err
	}
	return remote.Open(ctx, h.Name, line, m.Version, line.Explain)
}

// Self returns the greeting of this machine. Two names with the same kernel boot ID and state
// directory are the same host.
func (m LocalMachine) Self() remote.Greeting {
	g := remote.Greeting{Version: m.Version}
	g.Hostname, _ = os.Hostname()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return g
	}
	var st unix.Stat_t
	if unix.Stat(m.Dirs.State, &st) != nil {
		return g // Orrery was never used on this machine
	}
	g.Machine = fmt.Sprintf("%s %d %d", strings.TrimSpace(string(boot)), st.Dev, st.Ino)
	return g
}

// Inspect returns what this machine has of the things that nodes need.
func (m LocalMachine) Inspect() doctor.Facts { return doctor.Examine(m.Dirs.State) }

// Try tests which packets arrive between this machine and others.
func (m LocalMachine) Try(ctx context.Context, ways []path.Route) []int { return path.Probe(ctx, ways) }

// Outfit installs what this machine lacks.
func (LocalMachine) Outfit(ctx context.Context, engines []string, say func(string)) ([]string, error) {
	return outfit.Local.Install(ctx, engines, say)
}

// ServeHelper serves requests of the control host on the standard streams until the control host
// disconnects. Bench runs the requested experiments. It is nil if this program has no lab.
func (m LocalMachine) ServeHelper(ctx context.Context, bench remote.ExperimentRunner) error {
	if err := m.Allowed(); err != nil {
		return err
	}
	if err := os.MkdirAll(m.Dirs.State, 0o755); err != nil {
		return err
	}
	line, err := standardStreams()
	if err != nil {
		return problem.New(problem.Usage, "%s is started by orrery itself, on other hosts", HelperVerb).Because(err)
	}
	defer line.Close() //nolint:errcheck // it has ended
	defer context.AfterFunc(ctx, func() { _ = line.Close() })()
	if bench == nil {
		return remote.Serve(ctx, line, m, m.Self())
	}
	return remote.Serve(ctx, line, labMachine{m, bench}, m.Self())
}

// A labMachine machine also runs experiments.
type labMachine struct {
	LocalMachine
	remote.ExperimentRunner
}

// stdStreams are the standard input and output of this program.
type stdStreams struct {
	io.Reader
	io.Writer
	ends []*os.File
}

// Close closes the streams, which also ends pending reads and writes.
func (s *stdStreams) Close() error {
	var all error
	for _, f := range s.ends {
		all = errors.Join(all, f.Close())
	}
	return all
}

// standardStreams returns the standard input and output of this program and replaces them by
// /dev/null. Output of this program and of its child processes then cannot get into the protocol.
func standardStreams() (*stdStreams, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close() //nolint:errcheck // there is nothing in it
	s := &stdStreams{}
	for fd := range 2 {
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, os.NewSyscallError("dup", err)
		}
		if err := unix.SetNonblock(own, true); err != nil { // so that closing it ends a read
			return nil, os.NewSyscallError("fcntl", err)
		}
		s.ends = append(s.ends, os.NewFile(uintptr(own), "line"))
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return nil, os.NewSyscallError("dup", err)
		}
	}
	s.Reader, s.Writer = s.ends[0], s.ends[1]
	return s, nil
}
