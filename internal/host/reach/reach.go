// Package reach starts this program on another host, by the system's ssh, and gives the connection to it.
//
// It is one login for each connection: what is run there looks whether it has this very program, takes it in if not, and becomes it. So whatever a user has set up for ssh (keys, an
// agent, known hosts, jump hosts, ~/.ssh/config) works as he knows it, and nothing has to be installed over there. Nothing is asked on the way: who cannot get in without a
// question is told so.
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
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// A Far is a host that is reached by ssh.
type Far struct {
	Name    string // what the site calls it
	Address string // user@name:port; user and port may be left out
}

// entering is how long a host may take until it says what it needs: the login, without the program on its way.
const entering = 30 * time.Second

// A Line is a connection to this program on another host.
type Line struct {
	far    Far
	kill   context.CancelFunc
	to     io.WriteCloser
	from   *bufio.Reader
	out    io.Closer // below from
	errs   *host.Tail
	ended  chan struct{} // closed when ssh has ended
	closed sync.Once
	Pushed int64 // bytes of the program that had to be brought there; 0: it was there
}

var _ io.ReadWriteCloser = (*Line)(nil)

// Dial connects to a host: args are the command line with which this program is started there.
func (f Far) Dial(ctx context.Context, a *Arms, args ...string) (*Line, error) {
	arms, err := a.all()
	if err != nil {
		return nil, err
	}
	l, err := f.start(arms, args)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	late := time.AfterFunc(entering, func() { _ = l.Close() })
	err = l.enter(arms, func() { late.Stop() })
	late.Stop()
	switch {
	case !stop():
		err = context.Cause(ctx)
	case err == nil:
		return l, nil
	}
	_ = l.Close()
	<-l.ended
	if ctx.Err() != nil {
		return nil, problem.New(problem.Failed, "host %s was not reached", f.Name).At(f.Address).Because(context.Cause(ctx))
	}
	return nil, f.explain(err, l.errs.String())
}

// start starts ssh.
func (f Far) start(arms []arm, args []string) (*Line, error) {
	ctx, kill := context.WithCancel(context.Background())
	cmd := host.Program(ctx, "ssh", append(f.options(), command(arms, args))...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	l := &Line{far: f, kill: kill, errs: &host.Tail{}, ended: make(chan struct{})}
	theirIn, to, err := os.Pipe()
	if err != nil {
		kill()
		return nil, err
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		kill()
		theirIn.Close() //nolint:errcheck // nobody has it
		to.Close()      //nolint:errcheck // nobody has read from it
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, l.errs
	err = cmd.Start()
	theirIn.Close()  //nolint:errcheck // ssh has its own
	theirOut.Close() //nolint:errcheck // ssh has its own
	if err != nil {
		kill()
		to.Close()   //nolint:errcheck // nobody has read from it
		from.Close() //nolint:errcheck // nobody has written to it
		if errors.Is(err, exec.ErrNotFound) {
			return nil, problem.New(problem.Unable, "there is no ssh on this machine, by which host %s would be reached", f.Name).Try("apt install openssh-client")
		}
		return nil, err
	}
	l.to, l.from, l.out = to, bufio.NewReaderSize(from, 64<<10), from
	go func() {
		_ = cmd.Wait() // what it says of that is kept
		close(l.ended)
	}()
	return l, nil
}

// options are those of ssh. Nothing is asked, nothing else goes along the connection, and a network that is silent is noticed within ten seconds. A connection that the user's own ssh keeps open (ControlPath) is used, and none
// is left behind.
func (f Far) options() []string {
	user, name, port := Parts(f.Address)
	all := []string{"-T"}
	for _, o := range []string{
		"BatchMode=yes", "ControlMaster=no", "ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no",
		"RequestTTY=no", "RemoteCommand=none", "ConnectTimeout=9", "ServerAliveInterval=3", "ServerAliveCountMax=2",
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

// Parts gives the parts of an address, user@name:port, of which user and port may be left out.
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

// push brings the program to the host. What the host says of that is heard next, also if it took in less.
func (l *Line) push(arms []arm, of []string) error {
	for _, a := range arms {
		if len(of) == 1 && of[0] == a.machine {
			n, err := a.writeTo(l.to)
			l.Pushed += n
			if err != nil && n == 0 {
				return err
			}
			return nil
		}
	}
	return fmt.Errorf("it wants the program of %q", of)
}

// mostNoise is what a login may print before the host says something: greetings of its shell.
const mostNoise = 1 << 20

// word waits for what the host says. What its shell prints before is no part of it.
func (l *Line) word() ([]string, error) {
	for noise := 0; noise < mostNoise; {
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
	}
	return nil, errors.New("its shell prints much, and nothing that was asked")
}

// Read reads what the program over there says.
func (l *Line) Read(p []byte) (int, error) { return l.from.Read(p) }

// Write says something to it.
func (l *Line) Write(p []byte) (int, error) { return l.to.Write(p) }

// parting is how long ssh may take to end by itself once nobody says anything any more.
const parting = time.Second

// Close ends the connection. The program over there sees that, and ends what it has called.
func (l *Line) Close() error {
	var err error
	l.closed.Do(func() {
		err = l.to.Close()
		go func() {
			select {
			case <-l.ended:
			case <-time.After(parting):
			}
			l.kill()
			<-l.ended
			_ = l.out.Close()
		}()
	})
	return err
}

// Why explains the end of a connection that was open: what ssh has said of it.
func (l *Line) Why(cause error) error {
	select {
	case <-l.ended:
	case <-time.After(parting):
	}
	return l.far.lost(cause, l.errs.String())
}

// A refusal is what the host said in place of starting the program.
type refusal struct{ word, detail string }

func (r *refusal) Error() string { return cmp.Or(r.detail, r.word) }
