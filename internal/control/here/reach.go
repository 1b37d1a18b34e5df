package here

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/apply/remote"
	"orrery/internal/host/doctor"
	"orrery/internal/host/kept"
	"orrery/internal/host/outfit"
	"orrery/internal/host/path"
	"orrery/internal/host/reach"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/turn"
)

// Helper is the verb by which this program is started on another host.
const Helper = "host-helper"

// Keeper is the verb by which it keeps connections for the next run: Keep does that, with a socket in a directory.
const Keeper = kept.Verb

// Keep keeps them until there are none.
func Keep(ctx context.Context, dir string) error { return kept.Keep(ctx, dir) }

// arms are this program as it is for other hosts.
var arms reach.Arms

// Reach returns a connection to this program on another host: one that another run has left, else a new one, which the system's ssh makes. Whatever is well of it is left to the next run.
func (m This) Reach(ctx context.Context, h site.Host) (*remote.Link, error) {
	shelf, err := kept.Open(m.Dirs)
	if err != nil {
		return nil, err
	}
	far := reach.Far{Name: h.Name, Address: h.Address}
	key, err := far.Key(&arms, Helper)
	if err != nil {
		return nil, err
	}
	if ends := shelf.Take(ctx, key); ends != nil {
		if l, err := m.greetKept(ctx, far.Again(ends), h, shelf, key); err == nil || ctx.Err() != nil {
			return l, err
		}
	}
	line, err := far.Dial(ctx, &arms, Helper)
	if err != nil {
		return nil, err
	}
	return m.greet(ctx, line, h, shelf, key)
}

// brisk is how long a helper may take to answer on a connection that was kept, before a new one is made: with the 9 s that a login has, a host that is gone is told of within 10 s.
const brisk = time.Second

// unhurried is how long one may take to end all that a run began, before its connection is given up.
const unhurried = 2 * time.Second

func (m This) greetKept(ctx context.Context, line *reach.Line, h site.Host, shelf kept.Shelf, key string) (*remote.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, brisk)
	defer cancel()
	return m.greet(ctx, line, h, shelf, key)
}

// greet takes a turn on a connection.
func (m This) greet(ctx context.Context, line *reach.Line, h site.Host, shelf kept.Shelf, key string) (*remote.Link, error) {
	t, err := turn.Begin(line)
	if err != nil {
		_ = line.Close()
		return nil, line.Why(err)
	}
	l, err := remote.Open(ctx, h.Name, t, m.Version, line.Why)
	if err != nil || shelf.For == 0 {
		return l, err
	}
	l.Parting(func() {
		ctx, cancel := context.WithTimeout(context.Background(), unhurried)
		defer cancel()
		if t.End(ctx) != nil {
			return
		}
		if ends := line.Leave(); ends != nil {
			_ = shelf.Give(ctx, key, ends) // else the next run logs in
		} else {
			_ = line.Close()
		}
	})
	return l, nil
}

// Self tells which machine this is: two names that lead to one boot of a kernel and one state directory lead to one host.
func (m This) Self() remote.Greeting {
	g := remote.Greeting{Version: m.Version}
	g.Hostname, _ = os.Hostname()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return g
	}
	var st unix.Stat_t
	if unix.Stat(m.Dirs.State, &st) != nil {
		return g // nothing was ever done here
	}
	g.Machine = fmt.Sprintf("%s %d %d", strings.TrimSpace(string(boot)), st.Dev, st.Ino)
	return g
}

// Inspect looks what this machine has that nodes need.
func (m This) Inspect() doctor.Facts { return doctor.Look(m.Dirs.State) }

// Try tells which packets arrive between this machine and others.
func (m This) Try(ctx context.Context, ways []path.Way) []int { return path.Try(ctx, ways) }

// Outfit installs what this machine does not have.
func (This) Outfit(ctx context.Context, engines []string, say func(string)) ([]string, error) {
	return outfit.Here.Install(ctx, engines, say)
}

// Help does on this machine what is asked along the standard streams, for somebody who has reached it from another one, until he has gone. Begin is called
// before each run that asks for something. Bench does the experiments that are asked for.
func (m This) Help(ctx context.Context, bench remote.Bench, begin func(context.Context)) error {
	if err := m.Allowed(); err != nil {
		return err
	}
	if err := os.MkdirAll(m.Dirs.State, 0o755); err != nil {
		return err
	}
	line, err := standardStreams()
	if err != nil {
		return problem.New(problem.Usage, "%s is started by orrery itself, on other hosts", Helper).Because(err)
	}
	defer line.Close() //nolint:errcheck // it has ended
	defer context.AfterFunc(ctx, func() { _ = line.Close() })()
	return turn.Serve(line, func(conn io.ReadWriteCloser) error {
		begin(ctx)
		return remote.Serve(ctx, conn, measuring{m, bench}, m.Self())
	})
}

// A measuring machine does experiments, too.
type measuring struct {
	This
	remote.Bench
}

// streams are the input and the output of this program.
type streams struct {
	io.Reader
	io.Writer
	ends []*os.File
}

// Close ends them, and whatever waits for them.
func (s *streams) Close() error {
	var all error
	for _, f := range s.ends {
		all = errors.Join(all, f.Close())
	}
	return all
}

// standardStreams takes the input and the output of this program away from what it starts and prints: in their place is /dev/null.
func standardStreams() (*streams, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close() //nolint:errcheck // there is nothing in it
	s := &streams{}
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
