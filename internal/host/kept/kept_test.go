package kept

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/turn"
)

// limit is how long something may take, on a busy machine, that takes no time.
const limit = time.Minute

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	if path := os.Getenv("KEPT_STRANGER"); path != "" {
		os.Exit(stranger(path))
	}
	os.Exit(m.Run())
}

// stranger asks for a connection as another user. It ends with success if it gets an answer.
func stranger(path string) int {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Net: "unixpacket", Name: path})
	if err != nil {
		println(err.Error())
		return 3
	}
	_ = c.SetDeadline(time.Now().Add(limit))
	_ = send(c, request{Verb: toTake, Key: "k"})
	if _, err := receive(c, &answer{}); err != nil {
		return 4
	}
	return 0
}

// quick lets nothing take long, until the test ends.
func quick(t *testing.T) {
	was := []time.Duration{pulse, patience, parting, idle}
	pulse, patience, parting, idle = 5*time.Millisecond, 200*time.Millisecond, 20*time.Millisecond, 50*time.Millisecond
	t.Cleanup(func() { pulse, patience, parting, idle = was[0], was[1], was[2], was[3] })
}

// keeping returns a shelf whose process is in this one, and how that has ended.
func keeping(t *testing.T) (Shelf, chan error) {
	s := Shelf{Dir: filepath.Join(t.TempDir(), "links"), For: limit}
	must(t, os.Mkdir(s.Dir, 0o700))
	f, err := s.listen()
	must(t, err)
	l, err := net.FileListener(f)
	must(t, err)
	must(t, f.Close())
	ended := make(chan error, 1)
	ctx, end := context.WithCancel(context.Background())
	k := begin(s)
	over := make(chan struct{})
	go func() {
		defer close(over)
		ended <- k.keep(ctx, l.(*net.UnixListener))
	}()
	t.Cleanup(func() {
		end()
		<-over
	})
	return s, ended
}

// A line is a connection: its ends, and those of who is in the place of ssh.
type line struct {
	*Ends
	in, out, errs *os.File
}

func newLine(t *testing.T) *line {
	t.Helper()
	l := &line{Ends: &Ends{Born: time.Now()}}
	var err error
	pipe := func() (r, w *os.File) {
		r, w, err = os.Pipe()
		must(t, err)
		t.Cleanup(func() { _, _ = r.Close(), w.Close() })
		return r, w
	}
	l.in, l.To = pipe()
	l.From, l.out = pipe()
	l.Errs, l.errs = pipe()
	l.Log, _ = pipe()
	l.Process, _ = pipe()
	return l
}

// lives answers signs of life, as the far end of a connection does, until the other end is closed.
func (l *line) lives() (ended chan struct{}) {
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		defer l.errs.Close() //nolint:errcheck // as ssh does that ends
		_ = turn.Serve(both{l.in, l.out}, func(c io.ReadWriteCloser) error {
			_, err := io.Copy(c, c)
			return err
		})
	}()
	return ended
}

type both struct{ r, w *os.File }

func (b both) Read(p []byte) (int, error)  { return b.r.Read(p) }
func (b both) Write(p []byte) (int, error) { return b.w.Write(p) }
func (b both) Close() error                { _ = b.w.Close(); return b.r.Close() }

func (s Shelf) taken(t *testing.T, key string) *Ends {
	t.Helper()
	e := s.Take(t.Context(), key)
	if e != nil {
		t.Cleanup(e.Close)
	}
	return e
}

func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatal(what)
	}
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for began := time.Now(); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > limit {
			t.Fatal(what)
		}
	}
}

// TestKept: what one run gives, one other takes, and it is as it was. It is asked for signs of life meanwhile.
func TestKept(t *testing.T) {
	quick(t)
	patience = limit
	s, _ := keeping(t)
	l := newLine(t)
	ended := l.lives()
	must(t, s.Give(t.Context(), "k", l.Ends))
	time.Sleep(20 * pulse)
	if s.taken(t, "other") != nil {
		t.Error("there is one of another kind")
	}
	e := s.taken(t, "k")
	if e == nil {
		t.Fatal("it is not there")
	}
	if !e.Born.Equal(l.Born) {
		t.Errorf("it is of %v, and was of %v", e.Born, l.Born)
	}
	if s.taken(t, "k") != nil {
		t.Error("it is there twice")
	}
	now, err := turn.Begin(struct {
		io.Reader
		io.Writer
		io.Closer
	}{e.From, e.To, e.To})
	must(t, err)
	said := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(now)
		said <- string(text)
	}()
	_, err = io.WriteString(now, "hello")
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	must(t, now.End(ctx))
	if got := <-said; got != "hello" {
		t.Errorf("%q came back", got)
	}
	e.Close() // as when the run is killed that has it: nobody else does
	within(t, "it is open although nobody has it", ended)
}

// TestStalls: a connection on which nothing comes is given up, and nobody gets it; so is one on which something else comes.
func TestStalls(t *testing.T) {
	for name, says := range map[string]string{"silent": "", "other": "x"} {
		t.Run(name, func(t *testing.T) {
			quick(t)
			s, _ := keeping(t)
			l := newLine(t)
			must(t, s.Give(t.Context(), "k", l.Ends))
			if says != "" {
				_, err := io.WriteString(l.out, says)
				must(t, err)
			}
			ended := make(chan struct{})
			go func() {
				_, _ = io.Copy(io.Discard, l.in)
				close(ended)
			}()
			within(t, "it is kept", ended)
			if s.taken(t, "k") != nil {
				t.Error("somebody gets it")
			}
		})
	}
}

// TestUp: a connection is kept as long as was said, one for each kind, and not at all if it is old.
func TestUp(t *testing.T) {
	quick(t)
	patience = limit
	s, ended := keeping(t)
	first, second, old := newLine(t), newLine(t), newLine(t)
	over := []chan struct{}{first.lives(), second.lives(), old.lives()}
	must(t, s.Give(t.Context(), "k", first.Ends))
	must(t, s.Give(t.Context(), "k", second.Ends))
	select { // whichever comes later
	case <-over[0]:
		over[0] = over[1]
	case <-over[1]:
	case <-time.After(limit):
		t.Fatal("two of a kind are kept")
	}
	old.Born = time.Now().Add(-oldest - time.Second)
	must(t, s.Give(t.Context(), "old", old.Ends))
	within(t, "it is old and kept", over[2])
	e := s.taken(t, "k")
	if e == nil {
		t.Fatal("it is not there")
	}
	s.For = 10 * time.Millisecond
	must(t, s.Give(t.Context(), "k", e))
	within(t, "its time is up and it is kept", over[0])
	select { // and then the process ends, and nothing is left of it
	case err := <-ended:
		must(t, err)
	case <-time.After(limit):
		t.Fatal("it goes on with nothing to keep")
	}
	if _, err := os.Lstat(s.socket()); !os.IsNotExist(err) {
		t.Errorf("its socket: %v", err)
	}
}

// TestOff: who keeps nothing gives nothing, and takes nothing.
func TestOff(t *testing.T) {
	quick(t)
	s, _ := keeping(t)
	l := newLine(t)
	over := l.lives()
	s.For = 0
	must(t, s.Give(t.Context(), "k", l.Ends))
	within(t, "it is kept", over)
	if s.taken(t, "k") != nil {
		t.Error("somebody gets it")
	}
}

// TestStart: who gives the first connection starts the process, with the socket, and only once.
func TestStart(t *testing.T) {
	dir := t.TempDir()
	s := Shelf{Dir: filepath.Join(dir, "run", "links"), For: limit, program: []string{"sh", "-c", "echo $$ > " + dir + "/pid; echo x >> " + dir + "/begun; exec sleep 1000 <&3"}}
	l := newLine(t)
	must(t, s.Give(t.Context(), "k", l.Ends))
	must(t, s.begin())
	await(t, "nobody was started", func() bool { text, _ := os.ReadFile(dir + "/begun"); return string(text) == "x\n" })
	if s.taken(t, "k") != nil { // it has not even been read
		t.Error("somebody gets it")
	}
	pid, err := os.ReadFile(dir + "/pid")
	must(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	must(t, err)
	must(t, syscall.Kill(n, syscall.SIGKILL))
	for path, want := range map[string]os.FileMode{s.Dir: 0o700, s.socket(): 0o600} {
		st, err := os.Lstat(path)
		must(t, err)
		if st.Mode().Perm() != want {
			t.Errorf("%s: %v", path, st.Mode())
		}
	}
}

// TestStrangers: nobody else comes to a connection: not by a directory that others can enter, nor one that is not what it seems, nor by the socket itself.
func TestStrangers(t *testing.T) {
	quick(t)
	patience, idle = limit, limit
	s, _ := keeping(t)
	l := newLine(t)
	l.lives()
	must(t, s.Give(t.Context(), "k", l.Ends))
	if os.Geteuid() == 0 {
		for dir := s.Dir; dir != "/tmp" && len(dir) > 1; dir = filepath.Dir(dir) {
			must(t, os.Chmod(dir, 0o755))
		}
		must(t, os.Chmod(s.socket(), 0o666))
		self, err := os.Executable()
		must(t, err)
		mine := filepath.Join(s.Dir, "test")
		text, err := os.ReadFile(self)
		must(t, err)
		must(t, os.WriteFile(mine, text, 0o755))
		cmd := exec.Command(mine)
		cmd.Env = []string{"KEPT_STRANGER=" + s.socket()}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 4 {
			t.Errorf("another user gets an answer: %d, %s", cmd.ProcessState.ExitCode(), out)
		}
	}
	must(t, os.Chmod(s.Dir, 0o755))
	if s.taken(t, "k") != nil {
		t.Error("it is taken from a directory that others can enter")
	}
	must(t, os.Chmod(s.Dir, 0o700))
	link := Shelf{Dir: filepath.Join(t.TempDir(), "links"), For: limit}
	must(t, os.Symlink(s.Dir, link.Dir))
	if link.taken(t, "k") != nil {
		t.Error("it is taken by way of a link")
	}
	if s.taken(t, "k") == nil {
		t.Error("it is not there")
	}
	if same(os.Geteuid()+1) == nil {
		t.Error("another user is taken for this one")
	}
}

// TestWords: whoever says something else gets nothing, and the process goes on.
func TestWords(t *testing.T) {
	quick(t)
	patience, idle = limit, limit
	s, _ := keeping(t)
	for _, text := range []string{"", "x", `{"verb":"keep","key":"k"}`, `{"verb":"other"}`, strings.Repeat("x", mostSaid+1)} {
		c, err := s.dial(t.Context())
		must(t, err)
		must(t, c.SetDeadline(time.Now().Add(limit)))
		_, _ = c.Write([]byte(text))
		if got, err := receive(c, &answer{}); err == nil {
			t.Errorf("%.20q: %d files", text, len(got))
		}
		must(t, c.Close())
	}
	l := newLine(t)
	l.lives()
	must(t, s.Give(t.Context(), "k", l.Ends))
	c, err := s.dial(t.Context()) // who does not want it
	must(t, err)
	text, err := json.Marshal(request{Verb: toTake, Key: "none"})
	must(t, err)
	_, err = c.Write(text)
	must(t, err)
	must(t, c.Close())
	if s.taken(t, "k") == nil {
		t.Error("it is not there")
	}
}

// TestOpen: how long they are kept is what the environment says.
func TestOpen(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	for text, want := range map[string]time.Duration{"": usually, "0": 0, "5": 5 * time.Second, "2m": 2 * time.Minute} {
		t.Setenv(Setting, text)
		s, err := Open(host.Dirs{Run: "/run/orrery"})
		must(t, err)
		if os.Geteuid() != 0 {
			want = 0 // there is no directory for it
		}
		if s.For != want {
			t.Errorf("%q: %v", text, s.For)
		}
	}
	for _, text := range []string{"soon", "-1", "2h"} {
		t.Setenv(Setting, text)
		if _, err := Open(host.Dirs{}); problem.Exit(err) != int(problem.Usage) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
