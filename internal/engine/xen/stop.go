package xen

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/xl"
)

var errWaitDelay = exec.ErrWaitDelay

// Stop lets the guest power off and, when ctx has a deadline and it passes, ends the domain.
func (e *Engine) Stop(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := m.thaw(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if err := e.powerOff(ctx, m); err != nil {
		return m.Fails("does not stop", err)
	}
	return nil
}

// ending brings domains to their end: in order, if their guests hear of it.
type ending struct {
	agents *vm.Agents
	dom0   func() error // why this host has no domains, whether it could run them or not
}

// powerOff lets the guest shut down.
func (e *ending) powerOff(ctx context.Context, m machine) error {
	return m.ShutDown(ctx, func() error { return e.letOff(ctx, m) }, func() error { return e.end(ctx, m) })
}

// letOff asks a domain that runs to shut down, and waits until it has ended.
func (e *ending) letOff(ctx context.Context, m machine) error {
	if m.running() {
		if err := e.askOff(ctx, m); err != nil {
			return err
		}
	}
	if !m.running() {
		return nil
	}
	return m.awaitOff(ctx)
}

// askOff asks the agent, for as long as the domain runs; and if that does not answer, the kernel of
// the guest, by Xen. A guest that does neither is waited for all the same, then ended.
func (e *ending) askOff(ctx context.Context, m machine) error {
	if m.HasDisk() {
		_ = m.press(ctx)
		return ctx.Err()
	}
	err := e.agents.PowerOff(ctx, m.Ref, m.awaitOff)
	if err != nil && ctx.Err() == nil && m.running() {
		_ = xl.Do(ctx, "shutdown", m.domain())
	}
	return ctx.Err()
}

// looking is how often Xen is asked, at most, whether a guest has shut down whose QEMU goes on and
// over whose domain nobody watches any more. That has a price: all domains are read from xenstore.
const looking = 2 * time.Second

// awaitOff waits until the domain has ended. One that reboots has none for a moment, but somebody
// who makes another. The longer it takes, the less often it is looked: a guest that boots in
// emulation needs the processor itself.
func (m machine) awaitOff(ctx context.Context) error {
	const most = 500 * time.Millisecond
	for last, pause := time.Now(), 50*time.Millisecond; len(m.Group().Processes()) > 0; pause = min(pause+pause/8, most) {
		if time.Since(last) > looking && !m.watched() {
			if all, err := xl.Domains(ctx); err == nil && down(all, m.domain()) {
				return nil
			}
			last = time.Now()
		}
		if err := host.Pause(ctx, pause); err != nil {
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
		return m.Fails("does not end", err)
	}
	cgroup.RemoveEmpty(ref.Site)
	return e.Remove(ref)
}

// endDomain ends what Xen has of the node, and tells if that was nothing. A host that is no Dom0,
// or no longer, has no domains. On one from which xl was removed, those that run are not forgotten.
func (e *ending) endDomain(ctx context.Context, m machine) (none bool, err error) {
	if e.dom0() != nil {
		return true, nil
	}
	if _, err := xl.Program(); err != nil && !m.running() {
		return true, nil
	}
	err = xl.Do(ctx, "destroy", m.domain())
	if err == nil || xl.Absent(err) {
		return err != nil, nil
	}
	// Who watches over it may have ended it at the same time, and been faster.
	if all, lost := xl.Domains(ctx); lost == nil &&
		!slices.ContainsFunc(all, func(d xl.Domain) bool { return d.Name == m.domain() }) {
		return true, nil
	}
	return false, err
}

// end ends the domain, and what is left of one, and removes what it had while it ran: links, their
// guards, sockets, the control group. It has time of its own.
func (e *ending) end(ctx context.Context, m machine) error {
	ctx, cancel := engine.Cleanup(ctx)
	defer cancel()
	e.agents.Leave(m.Ref)
	if m.Group().Frozen() { // what is frozen does not end
		if err := m.Group().SetFrozen(false); err != nil {
			return err
		}
	}
	none, err := e.endDomain(ctx, m)
	if err != nil {
		return err
	}
	watched := len(m.Group().Processes()) > 0
	if err := m.Group().Kill(ctx); err != nil { // QEMU ends with its domain, or is left of one that died
		return err
	}
	if none && watched {
		// of a guest that reboots there was none for a moment, and who watched over it may have made
		// another since
		if _, err := e.endDomain(ctx, m); err != nil {
			return err
		}
	}
	for _, file := range []string{m.Freezing(), m.saving(), m.taken()} {
		if err := os.RemoveAll(file); err != nil {
			return err
		}
	}
	if err := m.Unlink(); err != nil {
		return err
	}
	cgroup.Remove(m.Group())
	return m.RemoveRun()
}
