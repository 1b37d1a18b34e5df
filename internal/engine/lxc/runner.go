package lxc

import (
	"context"
	"errors"
	"os"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/enter"
	"orrery/internal/tree"
)

// Runner runs commands in a running node, with the node's namespaces, control group, capabilities
// and seccomp filter.
func (e *Engine) Runner(ref engine.Ref) host.Runner { return runner{e.container(ref).processes, e} }

type runner struct {
	p processes
	e *Engine
}

var _ host.Viewer = runner{}

// View opens the root of the node.
func (r runner) View() (*tree.Root, func(id uint32) bool, error) {
	root, ids, err := r.e.openRoot(r.p.ref)
	return root, ids.Has, err
}

// Run runs a command in the node.
func (r runner) Run(ctx context.Context, c host.Command) error {
	record, err := r.e.Head(r.p.ref)
	if err != nil {
		return err
	}
	env := []string{"PATH=" + host.Path, "LANG=C.UTF-8", "HOME=/root"}
	if term := os.Getenv("TERM"); c.TTY && term != "" {
		env = append(env, "TERM="+term)
	}
	var absent error // error of the node, as opposed to an error of the command
	hold := func() (*enter.Init, error) {
		init, err := r.p.openInit(record)
		if err != nil && !errors.Is(err, enter.ErrNotReady) {
			absent = err
		}
		return init, err
	}
	node := enter.Container{
		Name: r.p.ref.Name, Hold: hold, Root: record.IDs().First, Group: r.p.group(), Calls: seccompPolicy(record), Env: env,
	}
	if err := node.Run(ctx, c); absent == nil {
		return err
	}
	return absent
}

// openInit opens the node's init, so that its process id cannot be reused.
func (p processes) openInit(r *nodedir.Record) (*enter.Init, error) {
	monitor, init := p.monitorAndInit()
	if init == 0 {
		return nil, engine.NotRunning(p.ref)
	}
	return enter.OpenInit(init, monitor, r.IDs().Map())
}

// Put writes files in the node.
func (r runner) Put(ctx context.Context, files ...host.File) error {
	return host.PutByCommand(ctx, r, files...)
}
