package xen

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/cgroup"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/xl"
	"orrery/internal/network"
	"orrery/internal/problem"
)

var errWaitDelay = exec.ErrWaitDelay

// hearing is how long the agent of a guest that is to shut down may take to answer: one that is booting has none yet.
const hearing = 30 * time.Second

// Stop lets the guest power off and, when ctx has a deadline and it passes, ends the domain.
func (e *Engine) Stop(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := e.thaw(context.WithoutCancel(ctx), m); err != nil {
		return err
	}
	if err := e.powerOff(ctx, m); err != nil {
		return problem.New(problem.Failed, "node %s does not stop", ref.Name).At(m.Path()).Because(err)
	}
	return nil
}

// powerOff lets the guest shut down. A domain that does so looks as if it ran, so a file tells Sweep of it.
func (e *Engine) powerOff(ctx context.Context, m machine) error {
	if len(m.group().Processes()) > 0 {
		if err := os.WriteFile(m.stopping(), nil, 0o600); err != nil {
			return err
		}
		err := ctx.Err()
		if err == nil && m.running() {
			err = e.askOff(ctx, m)
		}
		if err == nil && m.running() {
			err = m.awaitOff(ctx)
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	if err := e.end(context.WithoutCancel(ctx), m); err != nil {
		return err
	}
	if err := os.Remove(m.stopping()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// askOff asks the agent, for as long as the domain runs; and if that does not answer, the kernel of the guest, by Xen. A guest that does neither is waited for all the
// same, then ended.
func (e *Engine) askOff(ctx context.Context, m machine) error {
	asking, cancel := context.WithTimeout(ctx, hearing)
	defer cancel()
	go func() {
		if m.awaitOff(asking) == nil {
			cancel()
		}
	}()
	c, err := e.client(asking, m.ref)
	if err == nil {
		err = c.PowerOff(asking)
	}
	if err != nil && ctx.Err() == nil && m.running() {
		_ = xl.Do(ctx, "shutdown", m.domain())
	}
	return ctx.Err()
}

// looking is how often Xen is asked whether a guest has shut down whose QEMU goes on: who watched over the domain may have been killed.
const looking = 2 * time.Second

// awaitOff waits until the domain has ended. One that reboots has none for a moment, but somebody who makes another.
func (m machine) awaitOff(ctx context.Context) error {
	for last := time.Now(); len(m.group().Processes()) > 0; {
		if time.Since(last) > looking {
			if all, err := xl.Domains(ctx); err == nil && down(all, m.domain()) {
				return nil
			}
			last = time.Now()
		}
		if err := host.Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// down reports whether the guest of a domain has shut down, and nobody has taken note of it.
func down(all []xl.Domain, name string) bool {
	for _, d := range all {
		if d.Name == name {
			return d.State.Down()
		}
	}
	return false
}

// Destroy ends the domain, if it runs: whoever wants it to shut down in order stops it first.
func (e *Engine) Destroy(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := e.end(ctx, m); err != nil {
		return problem.New(problem.Failed, "node %s does not end", ref.Name).At(m.Path()).Because(err)
	}
	cgroup.RemoveEmpty(ref.Site)
	return e.Remove(ref)
}

// end ends the domain, and what is left of one, and removes what it had while it ran: links, their guards, sockets, the control group.
func (e *Engine) end(ctx context.Context, m machine) error {
	e.agents.Leave(m.ref)
	if m.group().Frozen() { // what is frozen does not end
		if err := m.group().SetFrozen(false); err != nil {
			return err
		}
	}
	if e.lacks() == nil {
		if err := xl.Do(ctx, "destroy", m.domain()); err != nil && !xl.Absent(err) {
			return err
		}
	}
	if err := m.group().Kill(ctx); err != nil { // QEMU ends with its domain, or is left of one that died
		return err
	}
	if err := os.Remove(m.freezing()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	r, err := m.Read()
	if err != nil {
		r = &nodedir.Record{} // it is half made, or not there
	}
	var ends []string
	for _, nic := range r.NICs {
		ends = append(ends, nic.HostEnd)
	}
	if len(ends) > 0 {
		err = network.RemoveLinks(ends)
		unguarded := network.Unguard(ctx, ends)
		if err = errors.Join(err, unguarded); err != nil {
			return err
		}
	}
	cgroup.Remove(m.group())
	return m.removeRun()
}
