package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"orrery/test/need"
)

// TestMain makes this test program run a helper on a terminal.
func TestMain(m *testing.M) {
	if do := helpers[os.Getenv("ORRERY_HOST_TEST")]; do != nil {
		do()
		return
	}
	if !need.Asked() {
		outputGrace /= 4
	}
	os.Exit(m.Run())
}

// helpers are the functions that this program runs on a terminal.
var helpers = map[string]func(){
	"surroundings": printSurroundings,
	"without": func() { // like `up` and `logs`
		var out bytes.Buffer
		err := Local{}.Run(context.Background(),
			Command{Args: []string{"/proc/self/exe"}, Env: []string{"ORRERY_HOST_TEST=type"}, Stdout: &out, Stderr: &out})
		fmt.Printf("%v %s\n", err, out.String())
	},
	"with": func() { // like `shell`
		err := Local{}.Run(context.Background(),
			Command{Args: []string{"/proc/self/exe"}, Env: []string{"ORRERY_HOST_TEST=type"}, TTY: true})
		fmt.Printf("%v\n", err)
	},
	"fed": func() { // like `shell` with its output in a file
		var out bytes.Buffer
		err := Local{}.Run(context.Background(),
			Command{Args: []string{"/proc/self/exe"}, Env: []string{"ORRERY_HOST_TEST=type"}, Stdin: os.Stdin, Stdout: &out,
				Stderr: &out})
		fmt.Printf("%v %s\n", err, out.String())
	},
	"shell": func() {
		var run *RunError
		err := Local{}.Run(context.Background(),
			Command{Args: []string{"sh", "-c", `stty size; read word; echo "got $word"; exit 7`}, TTY: true})
		fmt.Printf("as %v\n", errors.As(err, &run) && run.Status == 7)
	},
	"type": typeAhead,
}

// typeAhead types a word for the next reader of the terminal, in all possible ways.
func typeAhead() {
	var done []string
	for fd := range 3 {
		if typed(fd) == nil {
			done = append(done, fmt.Sprint(fd))
		}
	}
	if fd, err := unix.Open("/dev/tty", unix.O_RDWR, 0); err == nil && typed(fd) == nil {
		done = append(done, "/dev/tty")
	}
	fmt.Printf("typed by %q", done)
}

func typed(fd int) error {
	for _, c := range []byte("evil\n") {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&c))); errno != 0 {
			return errno
		}
	}
	return nil
}

// An ending is the state of a terminal when the helper on it has ended.
type ending struct {
	said  string
	typed int // bytes that a shell would read
	as    *unix.Termios
}

// onTerminals runs a helper on a terminal, as an operator's shell would. It returns the terminal,
// and its state before.
func onTerminals(t *testing.T, helper string) (operator *os.File, before *unix.Termios, ended <-chan ending) {
	t.Helper()
	operator, tty, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { operator.Close(); tty.Close() }) // tty stays open until the typed bytes are counted
	if before, err = unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(operator, &pty.Winsize{Rows: 33, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "ORRERY_HOST_TEST="+helper)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := make(chan ending, 1)
	var out TailBuffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&out, operator) // at the end, reading returns an error: no process holds the other side
	}()
	go func() {
		_ = cmd.Wait()
		var e ending
		e.typed, _ = unix.IoctlGetInt(int(tty.Fd()), unix.TIOCINQ)
		e.as, _ = unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		tty.Close()
		<-read
		e.said = out.String()
		end <- e
	}()
	return operator, before, end
}

// TestNoTyping checks that a command without a terminal cannot type into the operator's terminal,
// and so into the operator's shell.
//
// Promise (What others print and answer): No program in a node types into the operator's terminal.
// With test.TestSpeech, internal.TestPrograms.
func TestNoTyping(t *testing.T) {
	for _, helper := range []string{"without", "with", "fed"} {
		t.Run(helper, func(t *testing.T) {
			_, _, ended := onTerminals(t, helper)
			select {
			case e := <-ended:
				if !strings.Contains(e.said, "typed by") || e.typed != 0 || helper != "with" &&
					!strings.Contains(e.said, "typed by []") {
					t.Errorf("%s, and %d bytes are typed", e.said, e.typed)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it does not end")
			}
		})
	}
}

// TestTerminal checks that a command with a terminal has one of its own, of the size of the
// operator's, and gets what is typed there.
func TestTerminal(t *testing.T) {
	operator, before, ended := onTerminals(t, "shell")
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if now, err := unix.IoctlGetTermios(int(operator.Fd()), unix.TCGETS); err != nil || *now != *before {
			break // the terminal passes keys on
		}
	}
	if _, err := operator.WriteString("word\r"); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-ended:
		for _, want := range []string{"33 77", "got word", "as true"} {
			if !strings.Contains(e.said, want) {
				t.Errorf("%q is not in %q", want, e.said)
			}
		}
		if e.as == nil || *e.as != *before {
			t.Errorf("the terminal is left as %+v, was %+v", e.as, before)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}
