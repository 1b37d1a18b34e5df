// Package kept keeps connections to hosts between two runs of the program, so that the next run
// need not log in again.
//
// A run that comes to a good end gives its connections away: the ends of the pipes to ssh go, as descriptors, to a process that keeps them for a while (Keep). The next run takes them back.
// Whoever has a connection is the only one who has: when a run is killed, its connections end with it, and so does all that was under way there. A process that keeps them does nothing
// with them but send a sign of life now and then, and want an answer.
//
// The socket is in a directory that only its user can enter, and both ends look who is at the other one.
package kept

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// Verb is the one by which this program keeps connections. It is started with a listening socket as its first descriptor after the standard streams.
const Verb = "host-keeper"

// Setting is the variable of the environment that says how long connections are kept.
const Setting = "ORRERY_KEEP"

// usually is for how long they are, and oldest how old one may be that is kept once more: a login that is not allowed any more ends some time.
const (
	usually = time.Minute
	longest = time.Hour
	oldest  = 15 * time.Minute
)

// A Shelf is where connections are kept.
type Shelf struct {
	Dir string        // of the socket
	For time.Duration // how long they are kept; 0: not at all

	program []string // that keeps them; nil: this one
}

// Ends are what somebody has of a connection: the pipes to and from it, what is printed over there, what ssh itself says of it, and ssh.
type Ends struct {
	To, From, Errs, Log, Process *os.File
	Born                         time.Time // when the login was
}

func (e *Ends) all() []*os.File { return []*os.File{e.To, e.From, e.Errs, e.Log, e.Process} }

// files is how many descriptors a connection has.
const files = 5

// endsOf makes a connection of its descriptors.
func endsOf(all []*os.File, born time.Time) *Ends {
	return &Ends{To: all[0], From: all[1], Errs: all[2], Log: all[3], Process: all[4], Born: born}
}

// Close closes the ends, which ends the connection.
func (e *Ends) Close() {
	for _, f := range e.all() {
		_ = f.Close()
	}
}

// wholeGroup has a signal go to all that a process has started, where the kernel knows that (6.9).
const wholeGroup = 1 << 2

// Kill ends ssh at once.
func (e *Ends) Kill() {
	_ = control(e.Process, func(fd int) error {
		err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, wholeGroup)
		if errors.Is(err, unix.EINVAL) {
			err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		return err
	})
}

// Open returns the shelf of the user, as the environment has it. A user other than root has one where he has a directory for what runs.
func Open(dirs host.Dirs) (s Shelf, err error) {
	s.For = usually
	if text := os.Getenv(Setting); text != "" {
		if s.For, err = howLong(text); err != nil {
			return s, problem.New(problem.Usage, "%s is %q, and not how long connections to hosts are kept", Setting, text).Try("say a number of seconds, up to %d, or 0: not at all", int(longest.Seconds()))
		}
	}
	switch dir := os.Getenv("XDG_RUNTIME_DIR"); {
	case os.Geteuid() == 0:
		s.Dir = filepath.Join(dirs.Run, "links")
	case filepath.IsAbs(dir) && private(dir) == nil:
		s.Dir = filepath.Join(dir, "orrery")
	default:
		s.For = 0
	}
	return s, nil
}

func howLong(text string) (time.Duration, error) {
	if n, err := strconv.Atoi(text); err == nil {
		text = fmt.Sprintf("%ds", n)
	}
	d, err := time.ParseDuration(text)
	if err == nil && (d < 0 || d > longest) {
		err = errors.New("it is out of bounds")
	}
	return d, err
}

// private wants a directory that nobody else can enter.
func private(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 {
		return fmt.Errorf("%s is not a directory that is this user's alone", dir)
	}
	return nil
}

// A request is what a run asks of the process that keeps connections.
type request struct {
	Verb string        `json:"verb"`
	Key  string        `json:"key"`
	Born time.Time     `json:"born,omitzero"`
	For  time.Duration `json:"for,omitempty"`
}

const (
	toTake = "take"
	toKeep = "keep"

	mostSaid = 4 << 10
)

// An answer comes with the connection, if there is one.
type answer struct {
	Born time.Time `json:"born,omitzero"`
}

// brisk is how long either end waits for the other: whoever does not answer is done without.
const brisk = time.Second

// Take returns a connection that was kept by this key, which is nobody else's then; nil: there is none.
func (s Shelf) Take(ctx context.Context, key string) *Ends {
	if s.For == 0 {
		return nil
	}
	c, err := s.dial(ctx)
	if err != nil {
		return nil
	}
	defer c.Close() //nolint:errcheck // it has said all
	var a answer
	if send(c, request{Verb: toTake, Key: key}) != nil {
		return nil
	}
	got, err := receive(c, &a)
	if err != nil || len(got) != files {
		discard(got)
		return nil
	}
	return endsOf(got, a.Born)
}

// Give has a connection kept, which is the caller's no more. It must be clean: between two turns.
func (s Shelf) Give(ctx context.Context, key string, e *Ends) error {
	defer e.Close() // who keeps it has his own
	if s.For == 0 || time.Since(e.Born) > oldest {
		return nil
	}
	c, err := s.dial(ctx)
	if err != nil {
		if err := s.begin(); err != nil {
			return err
		}
		if c, err = s.dial(ctx); err != nil {
			return err
		}
	}
	defer c.Close() //nolint:errcheck // it has said all
	return send(c, request{Verb: toKeep, Key: key, Born: e.Born, For: s.For}, e.all()...)
}

// socket is where the process is found. Another way to talk with it gets another name.
func (s Shelf) socket() string { return filepath.Join(s.Dir, "keeper-2") }

func (s Shelf) dial(ctx context.Context) (*net.UnixConn, error) {
	if err := private(s.Dir); err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: brisk}
	c, err := d.DialContext(ctx, "unixpacket", s.socket())
	if err != nil {
		return nil, err
	}
	u := c.(*net.UnixConn)
	if err := own(u); err != nil {
		c.Close() //nolint:errcheck // nothing was said
		return nil, err
	}
	return u, u.SetDeadline(time.Now().Add(brisk))
}

// own wants the user of this process at the other end.
func own(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var who *unix.Ucred
	var bad error
	if err := raw.Control(func(fd uintptr) { who, bad = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if bad != nil {
		return os.NewSyscallError("getsockopt", bad)
	}
	return same(int(who.Uid))
}

func same(uid int) error {
	if uid != os.Geteuid() {
		return fmt.Errorf("user %d is at the other end", uid)
	}
	return nil
}

// begin starts the process that keeps connections, unless somebody else has by now.
func (s Shelf) begin() error {
	if err := os.MkdirAll(filepath.Dir(s.Dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(s.Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := private(s.Dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), brisk)
	defer cancel()
	held, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer held.Release()
	if c, err := s.dial(ctx); err == nil {
		return c.Close()
	}
	l, err := s.listen()
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // the process has its own
	return s.start(l)
}

// lock keeps others from starting or ending the process meanwhile.
func (s Shelf) lock(ctx context.Context) (*host.Lock, error) {
	return host.WaitLock(ctx, filepath.Join(s.Dir, "lock"), host.Alone, "the lock of kept connections")
}

// listen makes the socket.
func (s Shelf) listen() (*os.File, error) {
	fresh := s.socket() + ".new"
	_ = os.Remove(fresh) // of somebody who was killed
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Net: "unixpacket", Name: fresh})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	defer l.Close() //nolint:errcheck // the file has its own
	if err := os.Chmod(fresh, 0o600); err != nil {
		return nil, err
	}
	if err := os.Rename(fresh, s.socket()); err != nil {
		return nil, err
	}
	return l.File()
}

// start starts the process with the socket. It belongs to no terminal, and has nothing of its caller's.
func (s Shelf) start(l *os.File) error {
	words := s.program
	if words == nil {
		words = []string{"/proc/self/exe", Verb, s.Dir}
	}
	cmd := host.Program(context.Background(), words[0], words[1:]...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH")}
	cmd.ExtraFiles = []*os.File{l}
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait() //nolint:errcheck // if it ends before we do
	return nil
}

// send says something, with descriptors.
func send(c *net.UnixConn, what any, with ...*os.File) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	fds := make([]int, 0, len(with))
	return lend(with, fds, func(fds []int) error {
		var rights []byte
		if len(fds) > 0 {
			rights = unix.UnixRights(fds...)
		}
		_, _, err := c.WriteMsgUnix(text, rights, nil)
		return err
	})
}

// lend passes the descriptors of files to do, and keeps them open until it returns.
func lend(of []*os.File, fds []int, do func(fds []int) error) error {
	if len(of) == 0 {
		return do(fds)
	}
	return control(of[0], func(fd int) error { return lend(of[1:], append(fds, fd), do) })
}

// control does something with the descriptor of a file, which stays as it is.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var bad error
	if err := raw.Control(func(fd uintptr) { bad = do(int(fd)) }); err != nil {
		return err
	}
	return bad
}

// receive waits for something that is said, and takes the descriptors that come with it.
func receive(c *net.UnixConn, into any) (got []*os.File, err error) {
	text, rights := make([]byte, mostSaid), make([]byte, unix.CmsgSpace(4*2*files))
	n, r, flags, _, err := c.ReadMsgUnix(text, rights)
	if err != nil {
		return nil, err
	}
	controls, err := unix.ParseSocketControlMessage(rights[:r])
	if err != nil {
		return nil, err
	}
	for i := range controls {
		fds, err := unix.ParseUnixRights(&controls[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			got = append(got, os.NewFile(uintptr(fd), "kept"))
		}
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || n == 0 {
		discard(got)
		return nil, errors.New("it was cut off")
	}
	if err := json.Unmarshal(text[:n], into); err != nil {
		discard(got)
		return nil, err
	}
	return got, nil
}

func discard(all []*os.File) {
	for _, f := range all {
		_ = f.Close()
	}
}
