package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/runnertest"
	"orrery/internal/transport/rpc"
	"orrery/test/need"
)

// limit bounds an operation that normally ends at once, even on a busy machine.
const limit = time.Minute

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func ended(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		t.Fatal("it does not end")
		return nil
	}
}

// A line is a port made of two FIFOs. Like the kernel's ports, they return 0 bytes without a peer,
// and keep what was sent.
type line struct {
	port        *port
	there, back string
	t           *testing.T
}

func newLine(t *testing.T) *line {
	t.Helper()
	l := &line{t: t, there: filepath.Join(t.TempDir(), "there"), back: filepath.Join(t.TempDir(), "back")}
	for _, path := range []string{l.there, l.back} {
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	from, err := os.OpenFile(l.there, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	to, err := os.OpenFile(l.back, os.O_RDWR|unix.O_NONBLOCK, 0) // opening a FIFO only for writing would need a reader
	if err != nil {
		t.Fatal(err)
	}
	if l.port, err = newPort(from, to); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.port.Close() })
	return l
}

// connect opens the line as a client does.
func (l *line) connect() *ends {
	l.t.Helper()
	to, err := os.OpenFile(l.there, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	from, err := os.OpenFile(l.back, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	return &ends{from, to}
}

type ends struct {
	io.ReadCloser
	to *os.File
}

func (e *ends) Write(p []byte) (int, error) { return e.to.Write(p) }
func (e *ends) Close() error                { return errors.Join(e.to.Close(), e.ReadCloser.Close()) }

// serve serves the line until the test ends.
func (l *line) serve(p host.Runner) {
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			err = rpc.Serve(ctx, l.port, p)
		}
		done <- err
	}()
	l.t.Cleanup(func() {
		end()
		if err := ended(l.t, done); !errors.Is(err, context.Canceled) {
			l.t.Error(err)
		}
	})
}

func (l *line) open() *rpc.Client {
	l.t.Helper()
	c, err := rpc.NewClient(within(l.t), l.connect())
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

var here = guest{host.Local{Name: "here"}}

// TestRunner runs the test suite of all Runners with the machine.
func TestRunner(t *testing.T) {
	l := newLine(t)
	l.serve(here)
	c := l.open()
	defer c.Close()
	f := runnertest.Fixture{Runner: c.Runner("node"), Place: "node", Dir: t.TempDir()}
	if os.Geteuid() == 0 {
		f.Owner = "daemon:bin"
	}
	runnertest.Run(t, f)
}

// TestClients checks that clients can use one port one after another, even if a client leaves data
// behind.
func TestClients(t *testing.T) {
	l := newLine(t)
	early := l.connect() // before the server starts
	if _, err := early.Write([]byte("noise\norrery-wire 1 hello gone\n\x00\x00\x00")); err != nil {
		t.Fatal(err)
	}
	early.Close()
	l.serve(here)
	for i := range 20 {
		c := l.open()
		var out bytes.Buffer
		if err := c.Runner("node").Run(within(t), host.Command{Args: []string{"echo", "x"}, Stdout: &out}); err != nil ||
			out.String() != "x\n" {
			t.Errorf("%d: %v: %q", i, err, out.String())
		}
		if i%2 == 0 { // in the middle of a command
			go c.Runner("node").Run(context.Background(),
				host.Command{Args: []string{"cat"}, Stdin: zero{}, Stdout: io.Discard}) //nolint:errcheck // it is cut off
			time.Sleep(5 * time.Millisecond)
		}
		c.Close()
	}
}

type zero struct{}

func (zero) Read(p []byte) (int, error) { return len(p), nil }

// TestClientGoes checks that the commands of a client end with it.
func TestClientGoes(t *testing.T) {
	l := newLine(t)
	l.serve(here)
	c := l.open()
	dir := t.TempDir()
	called := make(chan error, 1)
	go func() {
		called <- c.Runner("node").Run(context.Background(),
			host.Command{Args: []string{"sh", "-c", "echo $$ >" + dir + "/new; mv " + dir + "/new " + dir +
				"/pid; exec sleep 1000"}})
	}()
	if err := here.Await(within(t), dir+"/pid"); err != nil {
		t.Fatal(err)
	}
	pid, err := os.ReadFile(dir + "/pid")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := ended(t, called); err == nil {
		t.Error("the call has succeeded")
	}
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); errors.Is(err, os.ErrNotExist) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it goes on")
		}
	}
}

// TestNoPolling checks that a port without a client is read only once for each of its events.
func TestNoPolling(t *testing.T) {
	l := newLine(t)
	reads := 0
	raw := l.port.raw
	l.port.raw = counted{raw, &reads}
	l.connect().Close()
	done := make(chan error, 1)
	go func() { _, err := l.port.Read(make([]byte, 10)); done <- err }()
	time.Sleep(100 * time.Millisecond)
	c := l.connect()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
	if reads > 5 {
		t.Errorf("it was read %d times", reads)
	}
	c.Close()
	if n, err := l.port.Read(make([]byte, 10)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("%d, %v of a client that has gone", n, err)
	}
}

// counted counts how often a file is read.
type counted struct {
	raw
	reads *int
}

type raw interface {
	Control(f func(uintptr)) error
	Read(f func(uintptr) bool) error
	Write(f func(uintptr) bool) error
}

func (c counted) Read(f func(uintptr) bool) error {
	return c.raw.Read(func(fd uintptr) bool { *c.reads++; return f(fd) })
}

// TestAwait checks paths that exist, that appear, and that appear in new directories. For a path
// that never appears, the wait ends with the context.
func TestAwait(t *testing.T) {
	dir := t.TempDir()
	if err := here.Await(within(t), dir); err != nil {
		t.Error(err)
	}
	done := make(chan error, 1)
	go func() { done <- here.Await(within(t), dir+"/a/b/c") }()
	for _, step := range []func() error{
		func() error { return os.Mkdir(dir+"/a", 0o700) },
		func() error { return os.Mkdir(dir+"/a/x", 0o700) },
		func() error { return os.Mkdir(dir+"/a/b", 0o700) },
		func() error { return unix.Mkfifo(dir+"/a/b/c", 0o600) },
	} {
		time.Sleep(5 * time.Millisecond)
		select {
		case err := <-done:
			t.Fatalf("it is not there yet: %v", err)
		default:
		}
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := here.Await(ctx, dir+"/never"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestOwners checks that owners are resolved by names of the machine.
func TestOwners(t *testing.T) {
	for owner, want := range map[string]string{"": "", "root:root": "0:0", "root": "0:0", "12:34": "12:34",
		"daemon:34": "1:34"} {
		if got, err := ids(owner); err != nil || got != want {
			t.Errorf("%q: %q, %v", owner, got, err)
		}
	}
	for _, owner := range []string{"nobody-here:root", "root:nobody-here", ":", "-1:0"} {
		if got, err := ids(owner); err == nil {
			t.Errorf("%q: %q", owner, got)
		}
	}
}

// TestAwaitMounted checks that Await finds a path in a file system that is mounted over its
// directory, as on /run at boot. It mounts in a namespace of its own.
func TestAwaitMounted(t *testing.T) {
	if !need.Alone(t, "--mount", "--propagation", "private") {
		return
	}
	run := t.TempDir()
	done := make(chan error, 1)
	go func() { done <- here.Await(within(t), run+"/private") }()
	time.Sleep(20 * time.Millisecond) // until Await watches the old directory
	if err := unix.Mount("tmpfs", run, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(run, unix.MNT_DETACH) //nolint:errcheck // it goes with the namespace
	time.Sleep(20 * time.Millisecond)
	if err := unix.Mkfifo(run+"/private", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
}
