package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Control keys of a terminal (termios(3)).
const (
	ctrlS = 0x13
	ctrlZ = 0x1a
)

// pressKey runs a command from a shell on a terminal and presses a key after some milliseconds. It
// does nothing further.
func pressKey(key byte) func([]string) error {
	return func(args []string) error {
		after, command, err := timed(args)
		if err != nil {
			return err
		}
		// The shell has job control. Without it, the kernel stops nothing, since no process could
		// continue stopped jobs.
		terminal, err := pty.Start(exec.Command("/bin/sh", "-im"))
		if err != nil {
			return err
		}
		go io.Copy(io.Discard, terminal) //nolint:errcheck // until the shell ends
		if _, err := io.WriteString(terminal, strings.Join(command.Args, " ")+"\n"); err != nil {
			return err
		}
		time.Sleep(after)
		if _, err := terminal.Write([]byte{key}); err != nil {
			return err
		}
		time.Sleep(time.Hour)
		return nil
	}
}

// leaveUnread runs a command whose output goes to a full pipe that no process reads.
func leaveUnread(args []string) error {
	_, full, err := os.Pipe()
	if err != nil {
		return err
	}
	fd := int(full.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	for piece := make([]byte, 4096); ; {
		if _, err := unix.Write(fd, piece); errors.Is(err, unix.EAGAIN) {
			break
		} else if err != nil {
			return err
		}
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		return err
	}
	command := commandOf(args)
	command.Stdout, command.Stderr = full, full
	return startAndStay(command)
}

// freezeRun runs a command and, after some milliseconds, freezes the control group that contains
// both of them. It writes a value to a file of the group, such as "FROZEN" to freezer.state.
func freezeRun(args []string) error {
	file, value := args[0], args[1]
	after, command, err := timed(args[2:])
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	time.Sleep(after)
	return os.WriteFile(file, []byte(value), 0) // this freezes this program, too
}

// timed splits off a leading argument that is a number of milliseconds.
func timed(args []string) (time.Duration, *exec.Cmd, error) {
	if len(args) < 2 {
		return 0, nil, errors.New("usage: MILLISECONDS COMMAND…")
	}
	ms, err := strconv.Atoi(args[0])
	return time.Duration(ms) * time.Millisecond, commandOf(args[1:]), err
}

func commandOf(args []string) *exec.Cmd {
	return exec.Command(args[0], args[1:]...)
} //nolint:gosec // it is what a test says

// startAndStay starts the command and stays alive, so that its open files last as long as another
// process may wait for them.
func startAndStay(command *exec.Cmd) error {
	if err := command.Start(); err != nil {
		return err
	}
	time.Sleep(time.Hour)
	return nil
}
