// Package reach starts this program on another host with the system's ssh.
//
// It returns the connection to the remote program. There is one login for each connection. The
// remote script checks whether the host has this very program, receives it if not, and executes it.
// So a user's settings for ssh (keys, an agent, known hosts, jump hosts, ~/.ssh/config) work as
// usual, and nothing has to be installed on the remote host. ssh never prompts: if a login needs a
// password or a confirmation, the user gets an error.
package reach

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// A Target is a host that is reached by ssh.
type Target struct {
	Name    string // the host's name in the site
	Address string // user@name:port, where user and port are optional
}

// entering limits how long a remote host may take until its script sends the first line. It
// includes the login, but not the transfer of the program. A connection that the user's own ssh
// keeps open needs no login, so there the limit is sharing.
var ( // variables, so that tests can change them
	loginTimeout       = 30 * time.Second
	sharedLoginTimeout = 8 * time.Second
)

// keptTimeout limits how long a host may take to send the first line on a kept login, before a new
// login is made. With the 9 s for that login, an unreachable host is reported within 10 s.
var keptTimeout = time.Second // variable, so that tests can change it

// A Conn is a connection to this program on another host.
type Conn struct {
	far   Target
	ends  ends
	from  *bufio.Reader    // buffers ends.from
	errs  *host.TailBuffer // what is printed on the remote host, a banner, and messages of a jump host
	log   *host.TailBuffer // messages of ssh itself
	ended chan struct{}    // closed when errs and log are complete
	kill  func()

	theirs *os.File      // the end of the log that ssh opens by its path
	gone   chan struct{} // closed when ssh has ended
	status int           // exit status of ssh, or -1 if it was killed by a signal
	noise  string        // the last line that the login printed before the script's first line

	begun  atomic.Int32 // awaited, or what came first: begunInTime, tooLate, stalled
	closed sync.Once
	Pushed int64 // bytes of the program that were sent, or 0 if the host had it
}

var _ io.ReadWriteCloser = (*Conn)(nil)

// How a connection begins. It leaves awaited only once: a limit that ends while the script's first line
// arrives either closes the connection and fails it, or does neither.
const (
	awaited     int32 = iota
	begunInTime       // the script has sent its first line
	tooLate           // it sent no line in time
	stalled           // the connection that the user's ssh shares has stalled
)

// giveUp closes a connection that is still awaited, for a reason.
func (l *Conn) giveUp(reason int32) {
	if l.begun.CompareAndSwap(awaited, reason) {
		_ = l.Close()
	}
}

// ends are the ends of the pipes to ssh: the remote program's input and output, its standard error,
// and the log of ssh.
type ends struct{ to, from, errs, log *os.File }

// Dial connects to a host and starts this program there with the given arguments. It uses a kept
// login unless that has stopped working.
func (f Target) Dial(ctx context.Context, a *Builds, share Sharing, args ...string) (*Conn, error) {
	arms, err := a.all()
	if err != nil {
		return nil, err
	}
	by := share.route(f)
	l, err := f.dial(ctx, arms, by, args)
	var no *refusal
	if by.kept && err != nil && ctx.Err() == nil && !errors.As(err, &no) {
		f.stopSharing(by)
		l, err = f.dial(ctx, arms, share.route(f), args)
	}
	switch {
	case err == nil:
		return l, nil
	case l == nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, problem.New(problem.Failed, "host %s was not reached", f.Name).At(f.Address).Because(context.Cause(ctx))
	case l.begun.Load() == stalled:
		return nil, problem.New(problem.Failed,
			"host %s: the connection that your ssh keeps open has stalled: no data for %v", f.Name,
			sharedLoginTimeout).
			At(f.Address).
			Try("close it, and run the same command again: ssh -O exit %s", strings.TrimPrefix(f.sshCommand(), "ssh "))
	}
	return nil, f.explain(err, l)
}

// dial makes a connection by a route. On an error the connection has been closed, and l holds the
// logs that explain the error, or is nil.
func (f Target) dial(ctx context.Context, arms []build, by route, args []string) (*Conn, error) {
	l, err := f.start(by, commandLine(arms, args))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	timeout := loginTimeout
	if by.kept {
		timeout = keptTimeout
	}
	late := time.AfterFunc(timeout, func() { l.giveUp(tooLate) })
	stalls := l.stallTimer(by)
	err = l.handshake(arms)
	_ = l.theirs.Close() // ssh has opened it, or never will
	late.Stop()
	stalls.Stop()
	switch {
	case !stop():
		err = context.Cause(ctx)
	case err == nil:
		return l, nil
	}
	_ = l.Close()
	l.waitOutput()
	l.waitOutput() // wait again: if ssh had not ended, it is killed after the first wait
	return l, err
}

// stallTimer returns a timer for a connection that uses one that the user's own ssh keeps open. If
// nothing was received when it fires, it closes the connection. The user's ssh itself would wait
// without limit.
func (l *Conn) stallTimer(by route) *time.Timer {
	return time.AfterFunc(sharedLoginTimeout, func() {
		if by.socket == "" && l.far.keptByUser() {
			l.giveUp(stalled)
		}
	})
}

// start starts ssh. The messages of ssh itself go to a pipe of their own, which ssh opens by a path
// (-E). Banners, and all that the remote host prints, arrive on standard error, and could imitate
// them.
func (f Target) start(by route, command string) (*Conn, error) {
	var near, theirs [4]*os.File
	for i := range near {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(near[:i])
			closeAll(theirs[:i])
			return nil, err
		}
		if near[i], theirs[i] = r, w; i == 0 {
			near[i], theirs[i] = w, r
		}
	}
	log := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), theirs[3].Fd())
	cmd := host.Program(context.Background(), "ssh", append(append([]string{"-E", log}, by.options...), command)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	err := cmd.Start()
	closeAll(theirs[:3]) // ssh has its own copies
	if err != nil {
		closeAll(near[:])
		closeAll(theirs[3:])
		if errors.Is(err, exec.ErrNotFound) {
			return nil, problem.New(problem.Unable, "ssh is not installed on this machine, but is needed to reach host %s",
				f.Name).Try("apt install openssh-client")
		}
		return nil, err
	}
	l := &Conn{
		far: f, ends: ends{near[0], near[1], near[2], near[3]}, from: bufio.NewReaderSize(near[1], 64<<10),
		errs: &host.TailBuffer{}, log: &host.TailBuffer{},
		ended: make(chan struct{}), gone: make(chan struct{}), kill: func() { _ = cmd.Cancel() }, theirs: theirs[3],
	}
	// The login outlives the connection, and so does the program of ProxyCommand, which is in the
	// same process group. So only ssh itself is killed.
	if by.socket != "" {
		l.kill = func() { _ = cmd.Process.Kill() }
	}
	go func() {
		_ = cmd.Wait() // the log says why ssh failed
		l.status = cmd.ProcessState.ExitCode()
		close(l.gone)
	}()
	go l.readLogs()
	return l, nil
}

// logGrace is how long the log is read after ssh has ended. The process that keeps its login also
// has the log open.
const logGrace = 20 * time.Millisecond

// readLogs reads the remote standard error and the log of ssh until both end.
func (l *Conn) readLogs() {
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(l.log, l.ends.log) })
	both.Go(func() {
		_, _ = io.Copy(l.errs, l.ends.errs)
		<-l.gone
		_ = l.ends.log.SetReadDeadline(time.Now().Add(logGrace))
	})
	both.Wait()
	close(l.ended)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// options returns the options of ssh, apart from those for sharing. They forbid prompts and
// forwardings, and detect a silent network within ten seconds.
func (f Target) options() []string {
	user, name, port := ParseAddress(f.Address)
	all := []string{"-T"}
	for _, o := range []string{
		"BatchMode=yes", "ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no",
		"RequestTTY=no", "RemoteCommand=none", "LogLevel=INFO", "ConnectTimeout=9", "ServerAliveInterval=3",
		"ServerAliveCountMax=2",
	} {
		all = append(all, "-o", o)
	}
	if user != "" {
		all = append(all, "-l", user)
	}
	if port != "" {
		all = append(all, "-p", port)
	}
	return append(all, "--", name)
}

// ParseAddress returns the parts of an address user@name:port, where user and port are optional.
func ParseAddress(address string) (user, name, port string) {
	name = address
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		user, name = name[:at], name[at+1:]
	}
	if h, p, err := net.SplitHostPort(name); err == nil {
		return user, h, p
	}
	return user, strings.Trim(name, "[]"), ""
}

// sshCommand returns the command with which a user would log in to the host.
func (f Target) sshCommand() string {
	user, name, port := ParseAddress(f.Address)
	text := "ssh "
	if port != "" {
		text += "-p " + port + " "
	}
	if user != "" {
		text += user + "@"
	}
	return text + name
}

// handshake reads the lines of the remote script, and sends the program if the host needs it, until the
// program has been started.
func (l *Conn) handshake(arms []build) error {
	for {
		words, err := l.readWords()
		if err != nil {
			return err
		}
		if !l.begun.CompareAndSwap(awaited, begunInTime) && l.begun.Load() != begunInTime {
			return os.ErrDeadlineExceeded // the connection is being closed
		}
		switch words[0] {
		case "have":
			return nil
		case "want":
			if err := l.upload(arms, words[1:]); err != nil {
				return err
			}
		default:
			return &refusal{words[0], strings.Join(words[1:], " ")}
		}
	}
}

// upload sends the program to the host. If the host reads only a part of it, push succeeds: the
// host's next line says why.
func (l *Conn) upload(arms []build, of []string) error {
	for _, a := range arms {
		if len(of) == 1 && of[0] == a.machine {
			n, err := a.writeTo(l.ends.to)
			l.Pushed += n
			if errors.Is(err, unix.EPIPE) {
				return nil
			}
			return err
		}
	}
	return fmt.Errorf("it requested the program for %q", of)
}

// maxNoiseBytes limits what a login may print before the script's first line, such as greetings.
const maxNoiseBytes = 1 << 20

var errNoise = errors.New("its shell prints much, but not the expected answer")

// readWords waits for the next line of the remote script and returns its words. It skips what the login
// shell prints before.
func (l *Conn) readWords() ([]string, error) {
	for noise := 0; noise < maxNoiseBytes; {
		text, err := l.from.ReadSlice('\n')
		noise += len(text)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, io.ErrUnexpectedEOF
		}
		if rest, ok := strings.CutPrefix(string(text), linePrefix+" "); ok {
			if words := strings.Fields(rest); len(words) > 0 {
				return words, nil
			}
		}
		l.noise = cmp.Or(strings.TrimSpace(string(text)), l.noise)
	}
	return nil, errNoise
}

// Read reads from the remote program.
func (l *Conn) Read(p []byte) (int, error) { return l.from.Read(p) }

// Write writes to the remote program.
func (l *Conn) Write(p []byte) (int, error) { return l.ends.to.Write(p) }

// endGrace is how long ssh may take to end after the connection was closed, before it is killed.
const endGrace = time.Second

// Close ends the connection. The remote program notices this, and ends the programs that it
// started.
func (l *Conn) Close() error {
	var err error
	l.closed.Do(func() {
		err = l.ends.to.Close()
		_ = l.ends.from.SetReadDeadline(time.Unix(1, 0)) // unblock a pending Read
		go func() {
			l.waitOutput()
			l.kill()
			l.waitOutput()
			closeAll([]*os.File{l.ends.from, l.ends.errs, l.ends.log})
		}()
	})
	return err
}

// waitOutput waits until the output of ssh ends, but not longer than endGrace.
func (l *Conn) waitOutput() {
	select {
	case <-l.ended:
	case <-time.After(endGrace):
	}
}

// Explain explains why an open connection has ended, from the messages of ssh.
func (l *Conn) Explain(cause error) error {
	l.waitOutput()
	return l.far.lostError(cause, l)
}

// A refusal is the reason why the remote script did not start the program.
type refusal struct{ word, detail string }

func (r *refusal) Error() string { return cmp.Or(r.detail, r.word) }
