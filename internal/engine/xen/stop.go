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

// Stop asks the guest to power off. If ctx has a deadline and it passes, Stop ends the domain.
func (e *Engine) Stop(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := m.thaw(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if err := e.powerOff(ctx, m); err != nil {
		return m.Problem("does not stop", err)
	}
	return nil
}

// terminator ends domains, in order if their guests respond.
type terminator struct {
	agents *vm.Agents
	dom0   func() error // why this host cannot have domains, or nil if it is a Dom0
}

// powerOff shuts the guest down.
func (e *terminator) powerOff(ctx context.Context, m machine) error {
	return m.ShutDown(ctx, func() error { return e.shutDown(ctx, m) }, func() error { return e.kill(ctx, m) })
}

// shutDown asks a running domain to shut down, and waits until it has ended.
func (e *terminator) shutDown(ctx context.Context, m machine) error {
	if m.running() {
		if err := e.requestPowerOff(ctx, m); err != nil {
			return err
		}
	}
	if !m.running() {
		return nil
	}
	return m.awaitOff(ctx)
}

// requestPowerOff asks the guest's agent to shut down while the domain runs. If the agent does not answer,
// it asks the guest's kernel through Xen. A guest that responds to neither is ended when the time
// is over.
func (e *terminator) requestPowerOff(ctx context.Context, m machine) error {
	if m.HasDisk() {
		_ = m.requestShutdown(ctx)
		return ctx.Err()
	}
	err := e.agents.PowerOff(ctx, m.Ref, m.awaitOff)
	if err != nil && ctx.Err() == nil && m.running() {
		_ = xl.Run(ctx, "shutdown", m.domain())
	}
	return ctx.Err()
}

// statePollInterval is the minimum interval at which Xen is asked whether a guest has shut down. That is
// needed if the process that watches the domain is gone and QEMU still runs. It is costly, because
// it reads all domains from xenstore.
const statePollInterval = 2 * time.Second

// awaitOff waits until the domain has ended. A guest that reboots has no domain for a moment, but
// has a process that makes another. The interval of checks grows, because a guest that boots in
// emulation needs the processor.
func (m machine) awaitOff(ctx context.Context) error {
	const most = 500 * time.Millisecond
	for last, pause := time.Now(), 50*time.Millisecond; len(m.Group().Processes()) > 0; pause = min(pause+pause/8, most) {
		if time.Since(last) > statePollInterval && !m.watched() {
			if all, err := xl.Domains(ctx); err == nil && hasShutDown(all, m.domain()) {
				return nil
			}
			last = time.Now()
		}
		if err := host.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

// hasShutDown reports whether the guest of a domain has shut down and the domain still exists.
func hasShutDown(all []xl.Domain, name string) bool {
	for _, d := range all {
		if d.Name == name {
			return d.State.Down()
		}
	}
	return false
}

// Destroy ends the domain if it runs. Callers that want an orderly shutdown call Stop first.
func (e *Engine) Destroy(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := e.kill(ctx, m); err != nil {
		return m.Problem("could not be killed", err)
	}
	cgroup.RemoveEmpty(ref.Site)
	return e.Remove(ref)
}

// endDomain ends the node's domain in Xen, and reports none if there was no domain. A host that is
// no Dom0, or no longer, has no domains. If xl was removed from a Dom0, endDomain returns an error
// for a domain that runs.
func (e *terminator) endDomain(ctx context.Context, m machine) (none bool, err error) {
	if e.dom0() != nil {
		return true, nil
	}
	if _, err := xl.Program(); err != nil && !m.running() {
		return true, nil
	}
	err = xl.Run(ctx, "destroy", m.domain())
	if err == nil || xl.IsNotFound(err) {
		return err != nil, nil
	}
	// The process that watches the domain may have ended it at the same time.
	if all, lost := xl.Domains(ctx); lost == nil &&
		!slices.ContainsFunc(all, func(d xl.Domain) bool { return d.Name == m.domain() }) {
		return true, nil
	}
	return false, err
}

// kill ends the domain, kills what is left, and removes what it had while it ran: links, their
// guards, sockets and the control group. It does not end with ctx.
func (e *terminator) kill(ctx context.Context, m machine) error {
	ctx, cancel := engine.Cleanup(ctx)
	defer cancel()
	e.agents.Disconnect(m.Ref)
	if m.Group().Frozen() { // frozen processes do not end
		if err := m.Group().SetFrozen(false); err != nil {
			return err
		}
	}
	none, err := e.endDomain(ctx, m)
	if err != nil {
		return err
	}
	watched := len(m.Group().Processes()) > 0
	if err := m.Group().Kill(ctx); err != nil { // QEMU ends with its domain, or is left of a domain that died
		return err
	}
	if none && watched {
		// There may have been no domain because the guest was rebooting. The process that watched
		// it may have made another since.
		if _, err := e.endDomain(ctx, m); err != nil {
			return err
		}
	}
	for _, file := range []string{m.FreezingFile(), m.savingFile(), m.loadingFile()} {
		if err := os.RemoveAll(file); err != nil {
			return err
		}
	}
	if err := m.RemoveLinks(); err != nil {
		return err
	}
	cgroup.Remove(m.Group())
	return m.RemoveRun()
}
