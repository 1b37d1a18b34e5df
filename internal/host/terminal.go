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

// A Terminal is the terminal of the user of a command: that of this program, or one on another
// machine.
type Terminal struct {
	Keys   io.Reader       // what the user types, key by key
	Screen io.Writer       // shows what is printed
	Size   Size            // the size at the start
	Sizes  <-chan Size     // new sizes, or nil if the size never changes
	Gone   <-chan struct{} // closed when the user has gone, or nil if the user always stays
}

// A Size is the size of a terminal, in characters.
type Size struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// RunWithRemoteTerminal runs a command on a terminal that another machine provides. The function run starts it
// there, and gets the terminal of the command's user, or that of the operator. The command ends
// when its user has gone.
func RunWithRemoteTerminal(ctx context.Context, c Command, run func(context.Context, Command, *Terminal) error) error {
	user := c.Terminal
	if user == nil {
		operators, letGo, err := MakeTerminalRaw()
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
			end(errors.New("the terminal was closed"))
		case <-over:
		}
	}()
	return run(ctx, c, user)
}

// runOnTerminal runs a command on a pseudo-terminal, and copies what is typed and printed between that
// and the user's terminal. The command can do anything to its own terminal. What it types there
// (TIOCSTI), only it reads.
func runOnTerminal(c Command, start func(Streams) (Process, error)) error {
	ours, theirs, err := openTerminal(c)
	if err != nil {
		return problem.New(problem.Unable, "this host has no free pseudo-terminal").Because(err).
			Try("check that /dev/pts is mounted")
	}
	defer ours.Close()
	user := c.Terminal
	if user == nil {
		operators, letGo, err := MakeTerminalRaw()
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
	defer followSize(command, user, ours)()
	go io.Copy(ours, user.Keys) //nolint:errcheck // it ends with the program: there is no other way to end the reading of a terminal
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		_, _ = io.Copy(user.Screen, ours) // at the end, reading returns EIO: no process holds the other side
	}()
	err = command.Wait()
	select {
	case <-printed:
	case <-time.After(outputGrace): // a process that the command left behind holds the terminal
	}
	return err
}

// openTerminal opens both ends of a pseudo-terminal, on the place where the command runs if it
// offers one.
func openTerminal(c Command) (ours, theirs *os.File, err error) {
	if c.Pseudo != nil {
		return c.Pseudo()
	}
	return pty.Open()
}

func resize(terminal *os.File, to Size) {
	_ = pty.Setsize(terminal, &pty.Winsize{Rows: to.Rows, Cols: to.Columns}) // if it fails, only the size is wrong
}

// followSize sets the size of a command's terminal to that of its user's terminal whenever that
// changes. It kills the command when the user has gone.
func followSize(command Process, user *Terminal, commands *os.File) (stop func()) {
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

// HideInput replaces os.Stdin with /dev/null, so that programs that inherit it cannot wait for the
// operator. MakeTerminalRaw still uses the operator's terminal.
func HideInput() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	hiddenInput, os.Stdin = os.Stdin, null
	return nil
}

func operatorInput() *os.File {
	if hiddenInput != nil {
		return hiddenInput
	}
	return os.Stdin
}

// MakeTerminalRaw puts the terminal of this program into raw mode until letGo is called, so that each
// key, even an interrupt, arrives as it is typed. Signals that would end this program, and leave
// the terminal in raw mode, close Gone instead.
func MakeTerminalRaw() (operators *Terminal, letGo func(), err error) {
	operator := operatorInput()
	fd := int(operator.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, nil, problem.New(problem.Usage, "the input is not a terminal").Because(err)
	}
	sizes, gone, over := make(chan Size), make(chan struct{}), make(chan struct{})
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGHUP, unix.SIGQUIT)
	go watchSignals(operator, signals, sizes, gone, over)
	return &Terminal{Keys: operator, Screen: os.Stdout, Size: sizeOf(operator), Sizes: sizes, Gone: gone}, func() {
		signal.Stop(signals)
		close(over)
		// The command may have sent a query to the terminal. Discard the answer, or it would be
		// typed into the operator's shell.
		_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
		_ = term.Restore(fd, before)
	}, nil
}

// watchSignals turns signals into new sizes and the end of the operator's terminal.
func watchSignals(operator *os.File, signals <-chan os.Signal, sizes chan<- Size, gone, over chan struct{}) {
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
