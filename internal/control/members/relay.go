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

// group is the control group of all that members call. Only root may freeze it, or bound what it gets.
const group = "orrery-members"

// passed are the signals of the caller's terminal, and of sudo, that reach the call. None that
// stops a process does.
var passed = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGWINCH}

// Relay runs this program once more with other arguments, for a member, and returns its exit
// status. It stands between the call and the caller, whose terminal can stop this process at most,
// which holds no lock: the call has a session and a control group of root's, and writes to no file
// that somebody else may serve. If this process ends, the call ends as by a power cut.
func Relay(args []string) (status int, err error) {
	runtime.LockOSThread() // the call inherits what this thread has, and dies with it
	defer runtime.UnlockOSThread()
	host.OwnLimits()
	err = cgroup.Named(group).Enter()
	if err == nil {
		err = host.OwnThread()
	}
	if err != nil {
		return 0, problem.New(problem.Unable, "what the caller has given this process cannot be dropped").Because(err)
	}
	return relay(args)
}

func relay(args []string) (status int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, append(passed, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGPIPE)...)
	cmd := host.Program(context.Background(), "/proc/self/exe", args...)
	cmd.Args[0] = "orrery"
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.Stdin = os.Stdin
	finish, err := connect(cmd)
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	over := make(chan struct{})
	go pass(signals, cmd, over)
	written := finish()
	err = cmd.Wait()
	close(over)
	signal.Reset() // whoever does not read his output can still end this process
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

// pass passes signals on to the call.
func pass(signals <-chan os.Signal, to *exec.Cmd, over <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if slices.Contains(passed, s) {
				_ = to.Process.Signal(s) // it may have ended
			}
		case <-over:
			return
		}
	}
}

// connect sets the outputs of a command to those of this process. An output that a killed process could not
// leave, such as a file of a file system that its user serves, gets a pipe, which is copied here. Finish is
// called once the command has started, and returns a channel that tells when all has been copied.
func connect(cmd *exec.Cmd) (finish func() (written <-chan struct{}), err error) {
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
