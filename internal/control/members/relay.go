package members

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/process"
	"orrery/internal/problem"
)

// cgroupName is the control group of everything that members call. Only root may freeze it or change its
// limits.
const cgroupName = "orrery-members"

// forwardedSignals are the signals from the caller's terminal and from sudo that are passed to the call. None
// of them stops a process.
var forwardedSignals = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGWINCH}

// Relay runs this program again with other arguments, for a member, and returns its exit status. It
// isolates the call from the caller. The caller's terminal can stop only this process, which holds
// no lock. The call has a session and a control group of root, and writes to no file that another
// user may serve. If this process ends, the call is killed at once.
func Relay(args []string) (status int, err error) {
	runtime.LockOSThread() // the call inherits the attributes of this thread, and dies with it
	defer runtime.UnlockOSThread()
	host.ResetLimits()
	err = cgroup.Named(cgroupName).Enter()
	if err == nil {
		err = host.ResetThread()
	}
	if err != nil {
		return 0, problem.New(problem.Unable, "the attributes inherited from the caller cannot be reset").Because(err)
	}
	return relay(args)
}

func relay(args []string) (status int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, append(forwardedSignals, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGPIPE)...)
	cmd := host.Program(context.Background(), "/proc/self/exe", args...)
	cmd.Args[0] = "orrery"
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.Stdin = os.Stdin
	finish, err := connectOutputs(cmd)
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	over := make(chan struct{})
	go forwardSignals(signals, cmd, over)
	written := finish()
	err = cmd.Wait()
	close(over)
	signal.Reset() // a caller who does not read the output can still end this process
	<-written
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return process.ShellStatus(exit.ProcessState), nil
	case err != nil:
		return 0, fmt.Errorf("the call ended: %w", err)
	}
	return 0, nil
}

// forwardSignals passes signals on to the call.
func forwardSignals(signals <-chan os.Signal, to *exec.Cmd, over <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if slices.Contains(forwardedSignals, s) {
				_ = to.Process.Signal(s) // the call may have ended
			}
		case <-over:
			return
		}
	}
}

// connectOutputs sets the outputs of a command to those of this process. A process that blocks on some
// outputs cannot be killed, for example on a file in a file system that the user serves. For these
// outputs, connect creates pipes and copies from them in this process. Finish must be called after
// the command has started. It returns a channel that is closed when everything has been copied.
func connectOutputs(cmd *exec.Cmd) (finish func() (written <-chan struct{}), err error) {
	var ends []*os.File
	var copies sync.WaitGroup
	var begin []func()
	output := func(to *os.File) (*os.File, error) {
		if host.Killable(to) {
			return to, nil
		}
		from, theirs, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		ends = append(ends, theirs)
		begin = append(begin, func() {
			defer copies.Done()
			defer from.Close() //nolint:errcheck // the call then finds that nobody reads
			_, _ = io.Copy(to, from)
		})
		copies.Add(1)
		return theirs, nil
	}
	stdout, err := output(os.Stdout)
	if err != nil {
		return nil, err
	}
	stderr := stdout
	if !host.SameFile(os.Stdout, os.Stderr) {
		if stderr, err = output(os.Stderr); err != nil {
			return nil, err
		}
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return func() <-chan struct{} {
		for _, f := range ends {
			f.Close()
		}
		for _, copy := range begin {
			go copy()
		}
		written := make(chan struct{})
		go func() {
			copies.Wait()
			close(written)
		}()
		return written
	}, nil
}
