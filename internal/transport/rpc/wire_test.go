package rpc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"orrery/internal/guest/boot"
	"orrery/internal/host"
	"orrery/internal/host/runnertest"
	"orrery/internal/problem"
	"orrery/internal/transport/frame"
)

// limit is how long something that should take no time may take on a busy machine.
const limit = time.Minute

func TestMain(m *testing.M) {
	cancelGrace, streamCloseTimeout, pingInterval = 500*time.Millisecond, 100*time.Millisecond, 200*time.Millisecond
	os.Exit(m.Run())
}

// pair returns both ends of a connection.
func pair(t testing.TB) (near, far net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]net.Conn, 2)
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "end")
		if ends[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

// within returns a context with the timeout limit.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// begin returns a client of a place. Serving ends with the client.
func begin(t testing.TB, place host.Runner) *Client {
	t.Helper()
	near, far := pair(t)
	done := make(chan error, 1)
	go func() { done <- Serve(context.Background(), far, place) }()
	c, err := NewClient(within(t), near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		ended(t, done)
	})
	return c
}

func ended(t testing.TB, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		t.Fatal("it does not end")
		return nil
	}
}

func sh(script string) host.Command { return host.Command{Args: []string{"sh", "-c", script}} }

// TestRunner: a place at the other end behaves like any other runner.
func TestRunner(t *testing.T) {
	f := runnertest.Fixture{Runner: begin(t, host.Local{Name: "far"}).Runner("node"), Place: "node", Dir: t.TempDir()}
	if os.Geteuid() == 0 {
		f.Owner = "12:34"
	}
	runnertest.Run(t, f)
}

// TestMuch: 64 MiB of output arrive completely on both streams, and are not kept in memory.
func TestMuch(t *testing.T) {
	r := begin(t, host.Local{}).Runner("node")
	const size = 64 << 20
	sums := [2]hash.Hash{sha256.New(), sha256.New()}
	c := host.Command{Args: []string{"cat"}, Stdin: io.TeeReader(io.LimitReader(&pattern{}, size), sums[0]),
		Stdout: sums[1]}
	if err := r.Run(within(t), c); err != nil || !bytes.Equal(sums[0].Sum(nil), sums[1].Sum(nil)) {
		t.Errorf("%v, or other bytes came", err)
	}
}

// TestLate: data can be read late at either end, even if the other end sent the last of it long
// ago.
func TestLate(t *testing.T) {
	r := begin(t, host.Local{}).Runner("node")
	text := strings.Repeat("0123456789abcde\n", 12000)
	c := sh("sleep 0.5; cat")
	var out bytes.Buffer
	c.Stdin, c.Stdout = strings.NewReader(text), writer(func(p []byte) (int, error) {
		if out.Len() == 0 {
			time.Sleep(5 * streamCloseTimeout)
		}
		return out.Write(p)
	})
	if err := r.Run(within(t), c); err != nil || out.String() != text {
		t.Errorf("%v: %d bytes of %d", err, out.Len(), len(text))
	}
}

// pattern is an endless stream of bytes that do not repeat soon.
type pattern struct{ at uint32 }

func (p *pattern) Read(b []byte) (int, error) {
	for i := range b {
		p.at = p.at*1664525 + 1013904223
		b[i] = byte(p.at >> 24)
	}
	return len(b), nil
}

// TestMany: many commands run at once, each with its own output. A command whose output is not read
// does not block the others.
func TestMany(t *testing.T) {
	c := begin(t, host.Local{})
	r := c.Runner("node")
	stuck, over := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		over <- r.Run(ctx, host.Command{Args: []string{"yes"},
			Stdout: writer(func(p []byte) (int, error) { <-stuck; return len(p), nil })})
	}()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			var out bytes.Buffer
			cmd := sh(fmt.Sprintf("cat; echo %d", i))
			cmd.Stdin, cmd.Stdout = strings.NewReader("in "), &out
			if err := r.Run(within(t), cmd); err != nil || out.String() != fmt.Sprintf("in %d\n", i) {
				t.Errorf("%v: %q", err, out.String())
			}
		})
	}
	all.Wait()
	cancel()
	if err := ended(t, over); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(stuck)
	if err := c.Ping(within(t)); err != nil {
		t.Error(err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// TestClientGoes: when a client goes, in whatever way, everything it has called ends.
func TestClientGoes(t *testing.T) {
	near, far := pair(t)
	place := &noted{begun: make(chan struct{}), ended: make(chan error, 1)}
	done := make(chan error, 1)
	go func() { done <- Serve(context.Background(), far, place) }()
	c, err := NewClient(within(t), near)
	if err != nil {
		t.Fatal(err)
	}
	called := make(chan error, 1)
	go func() { called <- c.Runner("node").Run(context.Background(), host.Command{Args: []string{"wait"}}) }()
	<-place.begun
	near.Close() // as the kernel does for a killed process
	if err := ended(t, place.ended); !errors.Is(err, errCallerGone) {
		t.Error(err)
	}
	if err := ended(t, called); err == nil {
		t.Error("the call has succeeded")
	}
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
}

// noted waits in each command until the command is ended.
type noted struct {
	host.Local
	begun chan struct{}
	ended chan error
}

func (n *noted) Run(ctx context.Context, _ host.Command) error {
	close(n.begun)
	<-ctx.Done()
	n.ended <- context.Cause(ctx)
	return context.Cause(ctx)
}

// TestPutInterrupted: if a client goes while it sends a file, no part of the file is written.
func TestPutInterrupted(t *testing.T) {
	near, far := pair(t)
	place := &puts{}
	done := make(chan error, 1)
	go func() { done <- Serve(context.Background(), far, place) }()
	c, err := NewClient(within(t), near)
	if err != nil {
		t.Fatal(err)
	}
	call, err := c.call(within(t), request{Verb: verbPut, Files: []file{{Path: "/x", Size: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&frame.Writer{To: call, Kind: kindStdout}).Write(make([]byte, 99)); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(within(t)); err != nil { // all before has been received
		t.Fatal(err)
	}
	near.Close()
	if err := ended(t, done); err != nil || place.called {
		t.Errorf("%v, put %v", err, place.called)
	}
}

type puts struct {
	host.Local
	called bool
}

func (p *puts) Put(context.Context, ...host.File) error { p.called = true; return nil }

// TestDial: connections from the other end: each direction has its own end; deadlines work; only
// addresses are allowed.
func TestDial(t *testing.T) {
	r := begin(t, host.Local{}).Runner("node")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // answers after it has received everything
				defer c.Close()
				text, _ := io.ReadAll(c)
				_, _ = c.Write(text)
			}()
		}
	}()
	c, err := r.Dial(within(t), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	var late net.Error
	if _, err := c.Read(make([]byte, 1)); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("a deadline gives %v", err)
	}
	_ = c.SetReadDeadline(time.Now().Add(limit))
	text := bytes.Repeat([]byte("much "), 200000)
	go func() {
		_, _ = c.Write(text)
		_ = c.(interface{ CloseWrite() error }).CloseWrite()
	}()
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%v: %d bytes", err, len(got))
	}
	if c.RemoteAddr().String() != l.Addr().String() {
		t.Error(c.RemoteAddr())
	}
	for _, address := range []string{"localhost:80", "127.0.0.1", "nowhere.invalid:1"} {
		if _, err := r.Dial(within(t), "tcp", address); err == nil ||
			!strings.Contains(err.Error(), "names are not looked up") {
			t.Errorf("%s: %v", address, err)
		}
	}
	gone := l.Addr().String()
	l.Close()
	if _, err := r.Dial(within(t), "tcp", gone); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
}

// TestDialClosed: closing a connection at the client closes it at the server, even while it is
// being read.
func TestDialClosed(t *testing.T) {
	r := begin(t, host.Local{}).Runner("node")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seen := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = c.Read(make([]byte, 1))
			c.Close()
		}
		seen <- err
	}()
	c, err := r.Dial(within(t), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() { _, err := c.Read(make([]byte, 1)); read <- err }()
	c.Close()
	if err := ended(t, seen); !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		t.Error(err)
	}
	if err := ended(t, read); err == nil {
		t.Error("it has read something")
	}
}

// TestTerminal: a terminal at the other end has the size of the user's terminal, initially and
// after changes, and receives its keys.
func TestTerminal(t *testing.T) {
	r := begin(t, host.Local{}).Runner("node")
	keys, typing := io.Pipe()
	sizes := make(chan host.Size)
	screen := &shown{}
	over := make(chan error, 1)
	go func() {
		c := sh(`stty size; while [ "$(stty size)" != "11 44" ]; do sleep 0.02; done; read a; echo "got $a"; tty >/dev/null && exit 5`)
		c.TTY, c.Terminal = true, &host.Terminal{Keys: keys, Screen: screen, Size: host.Size{Rows: 33, Columns: 77},
			Sizes: sizes}
		over <- r.Run(within(t), c)
	}()
	screen.await(t, "33 77")
	sizes <- host.Size{Rows: 11, Columns: 44}
	_, _ = typing.Write([]byte("word\r"))
	screen.await(t, "got word")
	err := ended(t, over)
	var e *host.RunError
	if !errors.As(err, &e) || e.Status != 5 {
		t.Errorf("%v: %q", err, screen.String())
	}
}

// TestTerminalGone: when the user of a terminal goes, the command ends.
func TestTerminalGone(t *testing.T) {
	r := begin(t, host.Local{}).Runner("node")
	keys, typing := io.Pipe()
	defer typing.Close()
	gone, screen, over := make(chan struct{}), &shown{}, make(chan error, 1)
	go func() {
		c := sh("echo ready; sleep 1000")
		c.TTY, c.Terminal = true, &host.Terminal{Keys: keys, Screen: screen, Gone: gone}
		over <- r.Run(context.Background(), c)
	}()
	screen.await(t, "ready")
	close(gone)
	if err := ended(t, over); err == nil || !strings.Contains(err.Error(), "terminal was closed") {
		t.Error(err)
	}
}

// shown is a screen.
type shown struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (s *shown) Write(p []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.Write(p)
}

func (s *shown) String() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.String()
}

func (s *shown) await(t *testing.T, words string) {
	t.Helper()
	for end := time.Now().Add(limit); !strings.Contains(s.String(), words); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q does not come: %q", words, s)
		}
	}
}

// machine is a place with all calls of a Machine.
type machine struct {
	host.Local
	awaited, off chan string
}

func (m machine) Await(ctx context.Context, path string) error {
	if path == "/never" {
		<-ctx.Done()
		m.awaited <- "ended"
		return context.Cause(ctx)
	}
	return problem.New(problem.Unable, "there is no %s", path).Try("make it")
}

func (m machine) ConfigureNICs(_ context.Context, nics []boot.NIC) error {
	for _, nic := range nics {
		m.awaited <- nic.Name + " " + nic.Address.String()
	}
	return nil
}

func (m machine) PowerOff() error { m.off <- "off"; return nil }

func (m machine) Unmount(_ context.Context, places []string) error {
	return &InUse{strings.Join(places, ", ")}
}

func (m machine) RefreshMounts(_ context.Context, places []string) error {
	return fmt.Errorf("nothing is at %s", places)
}

func (m machine) CheckDisksUnused(_ context.Context, serials []string) error {
	return &InUse{"disks " + strings.Join(serials, ", ")}
}

func (m machine) WakeFileServer(context.Context) error {
	m.awaited <- "stirred"
	return nil
}

// TestMachine: all calls of a Machine work. A place that is not a Machine rejects them clearly.
// Problems keep their texts.
func TestMachine(t *testing.T) {
	m := machine{awaited: make(chan string, 1), off: make(chan string, 1)}
	c := begin(t, m)
	if err := c.Ping(within(t)); err != nil {
		t.Error(err)
	}
	if err := c.PowerOff(within(t)); err != nil || <-m.off != "off" {
		t.Error(err)
	}
	if err := c.Await(within(t), "/x"); !problem.Is(err, problem.Unable) ||
		!strings.Contains(err.Error(), "there is no /x (make it)") {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := c.Await(ctx, "/never"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	select {
	case <-m.awaited:
	case <-time.After(limit):
		t.Error("the far end still waits")
	}
	var used *InUse
	if err := c.Unmount(within(t), []string{"/a/b", "/a"}); !errors.As(err, &used) || used.By != "/a/b, /a" {
		t.Error(err)
	}
	if err := c.RefreshMounts(within(t), []string{"/a", "/b"}); err == nil || errors.As(err, &used) ||
		!strings.Contains(err.Error(), "nothing is at [/a /b]") {
		t.Error(err)
	}
	if err := c.CheckDisksUnused(within(t), []string{"a", "b"}); !errors.As(err, &used) || used.By != "disks a, b" {
		t.Error(err)
	}
	if err := c.WakeFileServer(within(t)); err != nil || <-m.awaited != "stirred" {
		t.Error(err)
	}
	if err := c.ask(within(t), request{Verb: "of later times"}); !problem.Is(err, problem.Unable) {
		// this is how callers recognise an older server
		t.Error(err)
	}
	if err := c.ConfigureNICs(within(t),
		[]boot.NIC{{Name: "eth1", Address: netip.MustParsePrefix("10.2.0.2/24")}}); err != nil ||
		<-m.awaited != "eth1 10.2.0.2/24" {
		t.Error(err)
	}
	if err := begin(t, host.Local{}).ConfigureNICs(within(t), nil); !problem.Is(err, problem.Unable) {
		t.Error(err)
	}
	if err := begin(t, host.Local{}).PowerOff(within(t)); !problem.Is(err, problem.Unable) {
		t.Error(err)
	}
}

// TestTerminalOperators: the user's own terminal, which HoldTerminal requires.
func TestTerminalOperators(t *testing.T) {
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer ours.Close()
	defer theirs.Close()
	in, stdout := os.Stdin, os.Stdout
	defer func() { os.Stdin, os.Stdout = in, stdout }()
	_ = pty.Setsize(ours, &pty.Winsize{Rows: 21, Cols: 43})
	os.Stdin, os.Stdout = theirs, theirs
	over := make(chan error, 1)
	r := begin(t, host.Local{}).Runner("node")
	go func() {
		over <- r.Run(within(t), host.Command{Args: []string{"sh", "-c", "stty size; echo $TERM"},
			Env: []string{"TERM=odd"}, TTY: true})
	}()
	screen := &shown{}
	go io.Copy(screen, ours) //nolint:errcheck // it ends with the terminal
	screen.await(t, "21 43")
	screen.await(t, "odd")
	if err := ended(t, over); err != nil {
		t.Error(err)
	}
}
