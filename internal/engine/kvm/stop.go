package kvm

import (
	"context"
	"errors"
	"os"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/cgroup"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host/pci"
	"orrery/internal/network"
	"orrery/internal/problem"
)

// hearing is how long the agent of a guest that is to shut down may take to answer: one that is booting has none yet.
const hearing = 30 * time.Second

// Stop lets the guest power off and, when ctx has a deadline and it passes, ends the machine.
func (e *Engine) Stop(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := m.thaw(); err != nil {
		return err
	}
	if err := e.powerOff(ctx, m); err != nil {
		return problem.New(problem.Failed, "node %s does not stop", ref.Name).At(m.Path()).Because(err)
	}
	return e.tidy(ctx, m)
}

// powerOff lets the guest shut down. A machine that does so looks as if it ran, so a file tells Sweep of it.
func (e *Engine) powerOff(ctx context.Context, m machine) error {
	if len(m.group().Processes()) == 0 {
		return nil
	}
	if err := os.WriteFile(m.stopping(), nil, 0o600); err != nil {
		return err
	}
	if record, err := m.record(); err == nil {
		defer record.Close() //nolint:errcheck // nothing was written
		defer m.keep(record)
	}
	err := ctx.Err()
	if err == nil && m.running() {
		err = e.askOff(ctx, m)
	}
	if err == nil {
		err = m.awaitOff(ctx)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if err := m.group().Kill(context.WithoutCancel(ctx)); err != nil { // virtiofsd ends with QEMU, or is left of a machine that died
		return err
	}
	return os.Remove(m.stopping())
}

// askOff asks the agent, for as long as the machine runs. A guest whose agent does not answer is waited for all the same, then ended.
func (e *Engine) askOff(ctx context.Context, m machine) error {
	asking, cancel := context.WithTimeout(ctx, hearing)
	defer cancel()
	go func() {
		if m.awaitOff(asking) == nil {
			cancel()
		}
	}()
	if m.HasDisk() {
		return e.pressButton(ctx, m)
	}
	if c, err := e.client(asking, m.ref); err == nil {
		_ = c.PowerOff(asking)
	}
	return ctx.Err()
}

// Destroy ends the machine, if it runs: whoever wants it to shut down in order stops it first.
func (e *Engine) Destroy(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := m.thaw(); err != nil {
		return err
	}
	if err := m.group().Kill(ctx); err != nil {
		return problem.New(problem.Failed, "node %s does not end", ref.Name).At(m.Path()).Because(err)
	}
	if err := e.tidy(ctx, m); err != nil {
		return err
	}
	cgroup.RemoveEmpty(ref.Site)
	if err := e.leaveDevices(ctx, m); err != nil {
		return err
	}
	return e.Remove(ref)
}

// tidy removes what a machine had while it ran: links, their guards, sockets, the control group. What it was lent goes back.
func (e *Engine) tidy(ctx context.Context, m machine) error {
	e.agents.Leave(m.ref)
	e.logins.leave(m.ref)
	r, err := m.Read()
	if err != nil {
		r = &nodedir.Record{} // it is half made, or not there
	}
	var ends []string
	for _, nic := range r.NICs {
		ends = append(ends, nic.HostEnd)
	}
	err = network.RemoveLinks(ends)
	unguarded := network.Unguard(ctx, ends)
	cgroup.Remove(m.group())
	err = errors.Join(err, pci.Here.Return(m.holder()))
	return errors.Join(err, unguarded, m.removeRun())
}
