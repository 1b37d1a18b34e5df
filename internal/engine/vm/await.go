package vm

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Timeouts are how long a guest may take until its agent answers, and then until its systemd
// accepts commands.
type Timeouts struct{ Agent, Orders time.Duration }

// Await waits until the agent of a machine that was started answers and the guest's systemd listens
// to systemctl(1). It ignores if systemd does not get that far, because the next command will fail.
// It returns an error if the machine ends, for which off waits.
func (a *Agents) Await(ctx context.Context, m Machine, bound Timeouts, off func(context.Context) error) error {
	waiting, cancel := context.WithTimeoutCause(ctx, bound.Agent,
		fmt.Errorf("its agent has not answered within %v", bound.Agent))
	defer cancel()
	waiting, fail := context.WithCancelCause(waiting)
	defer fail(nil)
	go func() {
		if off(waiting) == nil {
			fail(errors.New("it was switched off before its agent answered"))
		}
	}()
	agent, err := a.connect(waiting, m)
	if err != nil {
		if why := context.Cause(waiting); why != nil {
			err = why
		}
		return err
	}
	listening, stop := context.WithTimeout(ctx, bound.Orders)
	defer stop()
	if agent.Await(listening, "/run/systemd/private") != nil {
		_ = off(listening) // when the guest's kernel gives up, its agent ends shortly before its machine
	}
	if !a.Nodes.Running(m.Ref) {
		return errors.New("it was switched off before its init was up")
	}
	return nil
}
