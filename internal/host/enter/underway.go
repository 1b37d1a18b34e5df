package enter

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/process"
)

// A Process is a running command.
type Process struct {
	ctx     context.Context
	process *os.Process
	ended   chan error
}

var _ host.Process = (*Process)(nil)

// PID returns the process id.
func (p *Process) PID() int { return p.process.Pid }

// Reaped reports whether the process has ended and was reaped, so that its PID may be another's.
// While it returns false, the PID belongs to this process.
func (p *Process) Reaped() bool {
	return errors.Is(p.process.Signal(unix.Signal(0)), os.ErrProcessDone)
}

// waitStarted waits until the child has become the command.
func (p *Process) waitStarted(outcome *os.File) error {
	go func() {
		state, err := p.process.Wait()
		if err == nil {
			err = exitError(state)
		}
		p.ended <- err
	}()
	stop := context.AfterFunc(p.ctx, func() { _ = outcome.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err := readFailure(outcome)
	if errors.Is(err, os.ErrDeadlineExceeded) { // the container may have frozen it
		_ = p.Kill()
		return context.Cause(p.ctx)
	}
	return err
}

// exitError returns nil if a command succeeded, or its exit status. If it was killed by a signal, the
// status is that of a shell.
func exitError(state *os.ProcessState) error {
	if state.Success() {
		return nil
	}
	return exitStatus(process.ShellStatus(state))
}

// killTimeout limits how long a killed command may take to end. A command that the container has
// frozen ends when it is thawed.
const killTimeout = time.Second

// Wait waits until the command has ended, and kills it when its context ends.
func (p *Process) Wait() error {
	select {
	case err := <-p.ended:
		return err
	case <-p.ctx.Done():
	}
	_ = p.Kill()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(killTimeout):
		return context.Cause(p.ctx)
	}
}

// Kill kills the command and all processes of its session.
func (p *Process) Kill() error { return unix.Kill(-p.process.Pid, unix.SIGKILL) }
