package host

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"orrery/internal/problem"
)

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// A Terminal is where somebody sits who uses a command: at this program's own, or at one elsewhere.
type Terminal struct {
	Keys   io.Reader       // what is typed, each key as it is
	Screen io.Writer       // shows what is printed
	Size   Size            // as it is at first
	Sizes  <-chan Size     // as it becomes; nil: it stays
	Gone   <-chan struct{} // tells that nobody sits there any more; nil: somebody always does
}

// A Size is that of a terminal, in characters.
type Size struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// Elsewhere lets a command that is to be on a terminal be run at another place, on one that its
// machine gives it: by where its user sits, or the operator does. It ends when nobody sits there
// any more.
func Elsewhere(ctx context.Context, c Command, run func(context.Context, Command, *Terminal) error) error {
	user := c.Terminal
	if user == nil {
		operators, letGo, err := HoldTerminal()
		if err != nil {
			return err
		}
		defer letGo()
		user = operators
	}
	if term := os.Getenv("TERM"); term != "" {
		c.Env = append([]string{"TERM=" + term}, c.Env...)
	}
	c.Stdin, c.Stdout, c.Stderr = user.Keys, user.Screen, nil
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-user.Gone:
			end(errors.New("its terminal has gone"))
		case <-over:
		}
	}()
	return run(ctx, c, user)
}

// onTerminal runs a command on a terminal of its own, and carries what is typed and printed between
// that and where its user sits. The command can do to its terminal what it likes; what it types
// there, it types for itself.
func onTerminal(c Command, start func(Streams) (Underway, error)) error {
	ours, theirs, err := openTerminal(c)
	if err != nil {
		return problem.New(problem.Unable, "this host has no pseudo-terminal to give").Because(err).
			Try("see that /dev/pts is mounted there")
	}
	defer ours.Close()
	user := c.Terminal
	if user == nil {
		operators, letGo, err := HoldTerminal()
		if err != nil {
			theirs.Close()
			return err
		}
		defer letGo()
		user = operators
	}
	resize(ours, user.Size)
	command, err := start(Streams{In: theirs, Out: theirs, Err: theirs, Terminal: true})
	theirs.Close()
	if err != nil {
		return err
	}
	defer follow(command, user, ours)()
	go io.Copy(ours, user.Keys) //nolint:errcheck // it ends with the program: there is no other way to end the reading of a terminal
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		_, _ = io.Copy(user.Screen, ours) // a terminal ends with an error (EIO) when nobody holds its other side
	}()
	err = command.Wait()
	select {
	case <-printed:
	case <-time.After(outputGrace): // something that is left behind holds it
	}
	return err
}

// openTerminal opens both ends of a pseudo-terminal: one of the place where the command runs, if it offers any.
func openTerminal(c Command) (ours, theirs *os.File, err error) {
	if c.Pseudo != nil {
		return c.Pseudo()
	}
	return pty.Open()
}

func resize(terminal *os.File, to Size) {
	_ = pty.Setsize(terminal, &pty.Winsize{Rows: to.Rows, Cols: to.Columns}) // what cannot have it has another
}

// follow sets the size of a command's terminal to that of its user's whenever that changes, and
// ends the command when the user is gone.
func follow(command Underway, user *Terminal, commands *os.File) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case to := <-user.Sizes:
				resize(commands, to)
			case <-user.Gone:
				_ = command.Kill()
				return
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}

// hiddenInput is the input of this program after HideInput, or nil.
var hiddenInput *os.File

// HideInput replaces os.Stdin with /dev/null, so that programs that are started with it cannot wait for the
// operator. HoldTerminal uses the operator's terminal as before.
func HideInput() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	hiddenInput, os.Stdin = os.Stdin, null
	return nil
}

func operatorsInput() *os.File {
	if hiddenInput != nil {
		return hiddenInput
	}
	return os.Stdin
}

// HoldTerminal has the terminal of this program pass on each key as it is typed, interrupts
// included, until it is let go. Signals that would end this program, and leave the terminal as it
// is, tell that the operator is gone instead.
func HoldTerminal() (operators *Terminal, letGo func(), err error) {
	operator := operatorsInput()
	fd := int(operator.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, nil, problem.New(problem.Usage, "the input is not a terminal").Because(err)
	}
	sizes, gone, over := make(chan Size), make(chan struct{}), make(chan struct{})
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGHUP, unix.SIGQUIT)
	go watch(operator, signals, sizes, gone, over)
	return &Terminal{Keys: operator, Screen: os.Stdout, Size: sizeOf(operator), Sizes: sizes, Gone: gone}, func() {
		signal.Stop(signals)
		close(over)
		// The command may have asked the terminal something: the answer would be typed into the operator's shell.
		_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
		_ = term.Restore(fd, before)
	}, nil
}

// watch tells what signals say of the operator's terminal.
func watch(operator *os.File, signals <-chan os.Signal, sizes chan<- Size, gone, over chan struct{}) {
	for {
		select {
		case s := <-signals:
			if s != unix.SIGWINCH {
				close(gone)
				return
			}
			select {
			case sizes <- sizeOf(operator):
			case <-over:
				return
			}
		case <-over:
			return
		}
	}
}

func sizeOf(terminal *os.File) Size {
	rows, columns, _ := pty.Getsize(terminal)
	return Size{uint16(rows), uint16(columns)}
}
