package xen

import (
	"context"
	"errors"
	"os"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/host/xl"
	"orrery/internal/observe"
)

// bootTimeouts returns how long a guest may take to come up. On an emulated processor, Xen emulates
// once more. A guest that powers off is not waited for.
func bootTimeouts(accel string) vm.Timeouts {
	if accel == observe.TCG {
		return vm.Timeouts{Agent: 20 * time.Minute, Orders: 10 * time.Minute}
	}
	return vm.Timeouts{Agent: 2 * time.Minute, Orders: time.Minute}
}

// Start boots a node.
func (e *Engine) Start(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	r, err := e.Record(ref)
	if err != nil {
		return err
	}
	if m.running() {
		return m.thaw(ctx)
	}
	if err := e.lacks(); err != nil {
		return err
	}
	if err := e.kill(ctx, m); err != nil { // what is left of a domain that died
		return err
	}
	return m.Boot(func() error { return e.start(ctx, m, r) }, func() error { return e.kill(ctx, m) })
}

// start prepares what the domain needs, boots it, and waits until its agent answers.
func (e *Engine) start(ctx context.Context, m machine, r *nodedir.Record) error {
	if !r.Imported() {
		if err := m.ProvideDisks(ctx, r); err != nil {
			return err
		}
	}
	f, err := prepare(ctx, e.Nodes, m, r)
	if err != nil {
		return err
	}
	if err := f.write(r); err != nil {
		return err
	}
	state, err := m.takeState()
	if err != nil {
		return err
	}
	if err := f.create(ctx, m, state); err != nil {
		return err
	}
	if r.Imported() {
		return ctx.Err()
	}
	if err := f.growImages(ctx, m, r.VM.Drives()); err != nil {
		return err
	}
	if err := e.agents.Await(ctx, m.Machine, bootTimeouts(accel()), m.awaitOff); err != nil {
		return m.StartProblem(err, lastLines(m.domain()))
	}
	return ctx.Err()
}

// create creates the domain from the mount namespace of the node's root. Programs that the
// toolstack starts for it are in that namespace and in the node's control group, too. The domain
// resumes from a state, or boots if state is "".
func (f *environment) create(ctx context.Context, m machine, state string) error {
	program, err := xl.Program()
	if err != nil {
		return err
	}
	args := []string{"create", f.file("domain.cfg")}
	if state != "" {
		// The configuration in the state is ignored.
		args = []string{"restore", f.file("domain.cfg"), state}
		defer os.Remove(state) //nolint:errcheck // what is left of it goes when the node ends
	}
	said := &host.TailBuffer{}
	cmd := host.Program(ctx, program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = said, said, "/"
	if err := f.overlay.WithMounted(func() error { return m.Group().Start(cmd) }); err != nil {
		return m.StartProblem(err, "")
	}
	err = cmd.Wait()
	if errors.Is(err, errWaitDelay) { // the process that watches the domain still has the pipe
		err = nil
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return m.StartProblem(xl.Failed(args, said.String(), err), modelLog(m.domain()))
	}
	if !m.running() {
		return m.StartProblem(errors.New("the QEMU that serves its files has exited"), modelLog(m.domain()))
	}
	return nil
}
