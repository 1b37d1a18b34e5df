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

// A Process is a command that has been started.
type Process struct {
	ctx     context.Context
	process *os.Process
	ended   chan error
}

var _ host.Underway = (*Process)(nil)

// PID returns its number.
func (p *Process) PID() int { return p.process.Pid }

// Reaped reports whether the process has ended and its number may be another's. While it is false,
// the number is its own.
func (p *Process) Reaped() bool {
	return errors.Is(p.process.Signal(unix.Signal(0)), os.ErrProcessDone)
}

// begin waits until the child has become the command.
func (p *Process) begin(outcome *os.File) error {
	go func() {
		state, err := p.process.Wait()
		if err == nil {
			err = ending(state)
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

// ending returns how a command has ended: nil if it succeeded, and else its status, which is that
// of a shell if it was killed by a signal.
func ending(state *os.ProcessState) error {
	if state.Success() {
		return nil
	}
	return exitStatus(process.ShellStatus(state))
}

// partingTimeout is how long a command that is killed may take to end. One that the container has
// frozen ends when it goes on.
const partingTimeout = time.Second

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
	case <-time.After(partingTimeout):
		return context.Cause(p.ctx)
	}
}

// Kill kills the command with all that it has started in its session.
func (p *Process) Kill() error { return unix.Kill(-p.process.Pid, unix.SIGKILL) }
