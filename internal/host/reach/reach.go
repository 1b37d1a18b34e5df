// Package reach starts this program on another host with the system's ssh, and returns the
// connection to it.
//
// It is one login for each connection: what is run there looks whether it has this very program,
// takes it in if not, and becomes it. So whatever a user has set up for ssh (keys, an agent, known
// hosts, jump hosts, ~/.ssh/config) works as he knows it, and nothing has to be installed over
// there. Nothing is asked on the way: who cannot get in without a question is told so.
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

// A Far is a host that is reached by ssh.
type Far struct {
	Name    string // what the site calls it
	Address string // user@name:port; user and port may be left out
}

// entering is how long a host may take until it says what it needs: the login, without the program
// on its way. On a connection that the user's own ssh keeps open nobody logs in, so that takes no
// longer than sharing.
var ( // but in tests
	entering = 30 * time.Second
	sharing  = 8 * time.Second
)

// keptTimeout is how long a host may take until it says what it needs on a login that is kept,
// before a new one is made: with the 9 s that this has, a host that is gone is told of within 10 s.
var keptTimeout = time.Second // but in tests

// A Line is a connection to this program on another host.
type Line struct {
	far   Far
	ends  ends
	from  *bufio.Reader // above that of the ends
	errs  *host.Tail    // what is printed over there, a banner and what a jump host says
	log   *host.Tail    // what ssh itself says
	ended chan struct{} // closed when ssh says no more
	kill  func()

	theirs *os.File      // the end of the log that ssh opens by its path
	gone   chan struct{} // closed when ssh has ended
	status int           // with which it has; -1: by a signal
	noise  string        // the last line that the login printed before it said anything

	late    atomic.Bool // nothing was said for too long
	stalled atomic.Bool // it goes by a connection that stalls
	closed  sync.Once
	Pushed  int64 // bytes of the program that had to be brought there; 0: it was there
}

var _ io.ReadWriteCloser = (*Line)(nil)

// ends are those of the pipes to ssh: to and from what was started over there, what is printed
// there, and what ssh itself says.
type ends struct{ to, from, errs, log *os.File }

// Dial connects to a host: args are the command line with which this program is started there. A
// login that is kept is used unless it is of no use any more.
func (f Far) Dial(ctx context.Context, a *Arms, share Sharing, args ...string) (*Line, error) {
	arms, err := a.all()
	if err != nil {
		return nil, err
	}
	by := share.route(f)
	l, err := f.dial(ctx, arms, by, args)
	var no *refusal
	if by.kept && err != nil && ctx.Err() == nil && !errors.As(err, &no) {
		f.forget(by)
		l, err = f.dial(ctx, arms, share.route(f), args)
	}
	switch {
	case err == nil:
		return l, nil
	case l == nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, problem.New(problem.Failed, "host %s was not reached", f.Name).At(f.Address).Because(context.Cause(ctx))
	case l.stalled.Load():
		return nil, problem.New(problem.Failed,
			"host %s: the connection that your ssh keeps open to it stalls: nothing came along it for %v", f.Name, sharing).
			At(f.Address).
			Try("end it, and run the same command again: ssh -O exit %s", strings.TrimPrefix(f.byHand(), "ssh "))
	}
	return nil, f.explain(err, l)
}

// dial makes a connection by a route. If there is an error, the connection has ended; it says why.
func (f Far) dial(ctx context.Context, arms []arm, by route, args []string) (*Line, error) {
	l, err := f.start(by, command(arms, args))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	timeout := entering
	if by.kept {
		timeout = keptTimeout
	}
	late := time.AfterFunc(timeout, func() { l.late.Store(true); _ = l.Close() })
	stalls := l.whereShared(by)
	err = l.enter(arms, func() { late.Stop(); stalls.Stop() })
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
	l.silent()
	l.silent() // it is killed if it has not ended
	return l, err
}

// whereShared returns a login up that says nothing, if it goes by a connection that the user's own
// ssh keeps open: ssh waits for that as long as it takes.
func (l *Line) whereShared(by route) *time.Timer {
	return time.AfterFunc(sharing, func() {
		if by.socket == "" && l.far.keptByUser() {
			l.stalled.Store(true)
			_ = l.Close()
		}
	})
}

// start starts ssh. What ssh says of the connection goes to a pipe of its own, which it opens by a
// path (-E): banners, and whatever is printed over there, come by its standard error, and could say
// anything.
func (f Far) start(by route, command string) (*Line, error) {
	var near, theirs [4]*os.File
	for i := range near {
		r, w, err := os.Pipe()
		if err != nil {
			shut(near[:i])
			shut(theirs[:i])
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
	shut(theirs[:3]) // ssh has its own
	if err != nil {
		shut(near[:])
		shut(theirs[3:])
		if errors.Is(err, exec.ErrNotFound) {
			return nil, problem.New(problem.Unable, "there is no ssh on this machine, by which host %s would be reached",
				f.Name).Try("apt install openssh-client")
		}
		return nil, err
	}
	l := &Line{
		far: f, ends: ends{near[0], near[1], near[2], near[3]}, from: bufio.NewReaderSize(near[1], 64<<10),
		errs: &host.Tail{}, log: &host.Tail{},
		ended: make(chan struct{}), gone: make(chan struct{}), kill: func() { _ = cmd.Cancel() }, theirs: theirs[3],
	}
	if by.socket != "" { // the login goes on, and by what it gets there (ProxyCommand), which is of the same process group
		l.kill = func() { _ = cmd.Process.Kill() }
	}
	go func() {
		_ = cmd.Wait() // what it says of that is in the log
		l.status = cmd.ProcessState.ExitCode()
		close(l.gone)
	}()
	go l.listen()
	return l, nil
}

// logGrace is how long the log is read after ssh has ended: the process that keeps its login has it open, too.
const logGrace = 20 * time.Millisecond

// listen takes down what is printed over there, and what ssh says, until it says no more.
func (l *Line) listen() {
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

func shut(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// options are those of ssh, however logins are shared. Nothing is asked, nothing else goes along
// the connection, and a network that is silent is noticed within ten seconds.
func (f Far) options() []string {
	user, name, port := Parts(f.Address)
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

// Parts returns the parts of an address, user@name:port, of which user and port may be left out.
func Parts(address string) (user, name, port string) {
	name = address
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		user, name = name[:at], name[at+1:]
	}
	if h, p, err := net.SplitHostPort(name); err == nil {
		return user, h, p
	}
	return user, strings.Trim(name, "[]"), ""
}

// byHand is what a user would type to get there.
func (f Far) byHand() string {
	user, name, port := Parts(f.Address)
	text := "ssh "
	if port != "" {
		text += "-p " + port + " "
	}
	if user != "" {
		text += user + "@"
	}
	return text + name
}

// enter hears what the host needs, and brings it there, until the program has been started.
func (l *Line) enter(arms []arm, heard func()) error {
	for {
		words, err := l.word()
		if err != nil {
			return err
		}
		heard()
		switch words[0] {
		case "have":
			return nil
		case "want":
			if err := l.push(arms, words[1:]); err != nil {
				return err
			}
		default:
			return &refusal{words[0], strings.Join(words[1:], " ")}
		}
	}
}

// push brings the program to the host. What the host says of that is heard next, also if it took in
// less, or nothing.
func (l *Line) push(arms []arm, of []string) error {
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
	return fmt.Errorf("it wants the program of %q", of)
}

// maxNoiseBytes is what a login may print before the host says something: greetings of its shell.
const maxNoiseBytes = 1 << 20

var errNoise = errors.New("its shell prints much, and nothing that was asked")

// word waits for what the host says. What its shell prints before is no part of it.
func (l *Line) word() ([]string, error) {
	for noise := 0; noise < maxNoiseBytes; {
		text, err := l.from.ReadSlice('\n')
		noise += len(text)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, io.ErrUnexpectedEOF
		}
		if rest, ok := strings.CutPrefix(string(text), mark+" "); ok {
			if words := strings.Fields(rest); len(words) > 0 {
				return words, nil
			}
		}
		l.noise = cmp.Or(strings.TrimSpace(string(text)), l.noise)
	}
	return nil, errNoise
}

// Read reads what the program over there says.
func (l *Line) Read(p []byte) (int, error) { return l.from.Read(p) }

// Write says something to it.
func (l *Line) Write(p []byte) (int, error) { return l.ends.to.Write(p) }

// endGrace is how long ssh may take to end by itself once nobody says anything any more.
const endGrace = time.Second

// Close ends the connection. The program over there sees that, and ends what it has called.
func (l *Line) Close() error {
	var err error
	l.closed.Do(func() {
		err = l.ends.to.Close()
		_ = l.ends.from.SetReadDeadline(time.Unix(1, 0)) // nobody waits for what ssh does not say any more
		go func() {
			l.silent()
			l.kill()
			l.silent()
			shut([]*os.File{l.ends.from, l.ends.errs, l.ends.log})
		}()
	})
	return err
}

// silent waits until ssh says no more, but not for long.
func (l *Line) silent() {
	select {
	case <-l.ended:
	case <-time.After(endGrace):
	}
}

// Why explains the end of a connection that was open: what ssh has said of it.
func (l *Line) Why(cause error) error {
	l.silent()
	return l.far.lost(cause, l)
}

// A refusal is what the host said in place of starting the program.
type refusal struct{ word, detail string }

func (r *refusal) Error() string { return cmp.Or(r.detail, r.word) }
