package test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// TestMixed: a container and a virtual machine with the same role are on one bridge and reach one
// another. Each has its own kernel.
func TestMixed(t *testing.T) {
	t.Parallel()
	s := newExample(t, "mixed", "it-mixed", "10.8.75.", "10.99.75.")
	s.do("up")
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{}
	for asked, by := range map[string]string{"machine": "container", "container": "machine"} {
		said := strings.Fields(s.on(by, "/bin/bash", "-c", "cat < /dev/tcp/"+asked+"/7000"))
		if len(said) != 2 || said[0] != asked {
			t.Fatalf("%s says to %s: %q", asked, by, said)
		}
		of[asked] = said[1]
	}
	if host := strings.TrimSpace(string(release)); of["container"] != host || of["machine"] == host {
		t.Errorf("on a host with kernel %s they run on %v", host, of)
	}
	s.run("plan").want(0, "nothing to do")
	s.run("status").want(0, "machine")
	s.Run("Console", func(t *testing.T) { mixedConsole(s.of(t)) })
}

// mixedConsole: a user at a terminal gets an exclusive shell on the machine's console, and
// afterwards the terminal as it was before.
func mixedConsole(s *site) {
	s.run("console", "machine").want(0, "Press Enter for a shell on machine")
	s.run("console", "machine", "-n", "-1").want(2, "the number is negative")
	s.run("console", "machin").want(2, "did you mean machine?")
	s.run("console", "container").want(4, "has no serial console", "orrery shell container")
	at := s.seat("console", "machine")
	at.wait("Ctrl-] leaves")
	at.write("\r")
	at.wait("root@machine")
	at.write("echo $((6*7))-$(tty)\r")
	at.wait("42-/dev/ttyS0")
	second := s.seat("console", "machine")
	second.wait("the console of node machine is in use: ")
	if second.end() == nil {
		s.Error("two have the console")
	}
	at.write("\x1d")
	if err := at.end(); err != nil {
		s.Error(err)
	}
	again := s.seat("console", "machine") // the shell is as it was left
	again.wait("Ctrl-] leaves")
	again.write("echo $((7*7))\r")
	again.wait("49")
	must(s.T, again.cmd.Process.Signal(syscall.SIGTERM))
	if again.end() == nil {
		s.Error("who was ended succeeds")
	}
}

// A seat is a command on its own terminal.
type seat struct {
	*site
	cmd      *exec.Cmd
	terminal *os.File
	before   *unix.Termios
	said     chan []byte
	heard    []byte
}

func (s *site) seat(args ...string) *seat {
	s.Helper()
	operator, tty, err := pty.Open()
	must(s.T, err)
	cmd, _, _ := s.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	must(s.T, err)
	must(s.T, cmd.Start())
	at := &seat{site: s, cmd: cmd, terminal: operator, before: before, said: make(chan []byte, 1000)}
	s.Cleanup(func() { _ = cmd.Process.Kill(); operator.Close(); tty.Close() })
	go func() {
		for {
			piece := make([]byte, 4096)
			n, err := operator.Read(piece)
			if err != nil {
				return
			}
			at.said <- piece[:n]
		}
	}()
	return at
}

func (a *seat) write(keys string) {
	_, err := a.terminal.WriteString(keys)
	must(a.T, err)
}

// wait waits for a text, after those that were waited for before.
func (a *seat) wait(words string) {
	a.Helper()
	end := time.After(2 * time.Minute)
	for {
		if _, rest, found := bytes.Cut(a.heard, []byte(words)); found {
			a.heard = rest
			return
		}
		select {
		case piece := <-a.said:
			a.heard = append(a.heard, piece...)
		case <-end:
			a.Fatalf("%q is not said, but %q", words, a.heard)
		}
	}
}

// end waits until the command ends, and checks that the terminal is as it was before.
func (a *seat) end() error {
	a.Helper()
	err := a.cmd.Wait()
	after, bad := unix.IoctlGetTermios(int(a.terminal.Fd()), unix.TCGETS)
	if bad != nil || *after != *a.before {
		a.Errorf("the terminal was %+v, and is %+v (%v)", a.before, after, bad)
	}
	return err
}
