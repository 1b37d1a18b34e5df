package xen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/host/xl"
	"orrery/internal/image/kernel"
	"orrery/internal/network"
	"orrery/internal/problem"
)

// booting is how long a guest may take until its agent answers, and ordering until its systemd takes orders. Whether Xen runs in emulation, it does not tell, so it is
// as long as that may take. One that gives up is not waited for.
const (
	booting  = 6 * time.Minute
	ordering = 3 * time.Minute
)

// Start boots a node.
func (e *Engine) Start(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	r, err := e.Record(ref)
	if err != nil {
		return err
	}
	if m.running() {
		return e.thaw(ctx, m)
	}
	if err := e.lacks(); err != nil {
		return err
	}
	if err := e.end(ctx, m); err != nil { // what is left of a domain that died
		return err
	}
	if err := os.WriteFile(m.starting(), nil, 0o600); err != nil {
		return err
	}
	defer os.Remove(m.starting()) //nolint:errcheck // what is left of it ends the node at the next sweep
	if err := e.start(ctx, m, r); err != nil {
		return errors.Join(err, e.end(context.WithoutCancel(ctx), m))
	}
	return nil
}

// start makes what the domain stands on, then lets it boot.
func (e *Engine) start(ctx context.Context, m machine, r *nodedir.Record) error {
	guest, err := qemu.Guest()
	if err != nil {
		return err
	}
	from, err := kernel.Files(ctx, e.Store, r.Kernel, guest)
	if err != nil {
		return err
	}
	if err := network.Guard(ctx, network.Ports(&r.Node)); err != nil {
		return err
	}
	f, err := e.found(m, r, from)
	if err != nil {
		return err
	}
	if err := f.write(r); err != nil {
		return err
	}
	if err := e.create(ctx, m, f); err != nil {
		return err
	}
	if err := e.awaitGuest(ctx, m); err != nil {
		return m.startProblem(err, lastWords(m.domain()))
	}
	return ctx.Err()
}

// create has the domain made, from the place where the node's root is mounted: what the toolstack starts for it is there, too, and in the node's control group.
func (e *Engine) create(ctx context.Context, m machine, f *foundation) error {
	program, err := xl.Program()
	if err != nil {
		return err
	}
	args := []string{"create", f.file("domain.cfg")}
	said := &host.Tail{}
	cmd := host.Program(ctx, program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = said, said, "/"
	if err := f.overlay.Within(func() error { return m.group().Start(cmd) }); err != nil {
		return m.startProblem(err, "")
	}
	err = cmd.Wait()
	if errors.Is(err, errWaitDelay) { // who watches over the domain has our pipe yet
		err = nil
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return m.startProblem(xl.Failed(args, said.String(), err), modelLog(m.domain()))
	}
	if !m.running() {
		return m.startProblem(errors.New("the QEMU that gives it its root has ended"), modelLog(m.domain()))
	}
	return nil
}

// awaitGuest waits until the agent answers and the guest's systemd listens to systemctl(1). A guest that does not come so far is the business of whoever gives
// it orders.
func (e *Engine) awaitGuest(ctx context.Context, m machine) error {
	waiting, cancel := context.WithTimeoutCause(ctx, booting, fmt.Errorf("its agent has not answered within %v", booting))
	defer cancel()
	waiting, fail := context.WithCancelCause(waiting)
	defer fail(nil)
	go func() {
		if m.awaitOff(waiting) == nil {
			fail(errors.New("it was switched off before its agent answered"))
		}
	}()
	agent, err := e.agents.Of(waiting, m.ref, m.run)
	if err != nil {
		if why := context.Cause(waiting); why != nil {
			err = why
		}
		return err
	}
	listening, stop := context.WithTimeout(ctx, ordering)
	defer stop()
	_ = agent.Await(listening, "/run/systemd/private")
	if !m.running() {
		return errors.New("it was switched off before its init was up")
	}
	return nil
}

func (m machine) startProblem(err error, detail string) error {
	if detail != "" {
		err = fmt.Errorf("%w\n%s", err, detail)
	}
	return problem.New(problem.Failed, "node %s does not start", m.ref.Name).At(m.Path()).Because(err).
		Try("orrery doctor tells what this host lacks")
}

// removeRun removes the sockets and scripts, and the directories above them that are empty then.
func (m machine) removeRun() error {
	if err := os.RemoveAll(m.run); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(m.run))
	_ = os.Remove(filepath.Dir(filepath.Dir(m.run)))
	return nil
}
