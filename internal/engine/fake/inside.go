package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
)

// serve answers a connection to a port of a node.
type serve func(net.Conn)

// inside is the host.Runner of a node.
type inside struct {
	engine *Engine
	ref    engine.Ref
}

// Runner runs commands in a running node.
func (e *Engine) Runner(ref engine.Ref) host.Runner { return inside{e, ref} }

func (n *node) boot() {
	n.life, n.stop = context.WithCancel(context.Background())
	n.listeners = map[string]serve{}
}

func (n *node) halt() {
	if n.stop != nil {
		n.stop()
	}
	n.life, n.stop, n.listeners = nil, nil, nil
}

// running returns the node if commands can be run in it; the engine must be locked.
func (i inside) running() (*node, error) {
	n, err := i.engine.find(i.ref)
	switch {
	case err != nil:
		return nil, err
	case n.state == observe.Frozen:
		return nil, fmt.Errorf("node %s is %s", i.ref.Name, n.state)
	case n.state != observe.Running:
		return nil, engine.NotRunning(i.ref)
	}
	return n, nil
}

// Run runs a command until it ends or the node stops.
func (i inside) Run(ctx context.Context, c host.Command) error {
	tail := &host.TailBuffer{}
	stdout, stderr := io.Writer(tail), io.Writer(tail)
	if c.Stdout != nil {
		stdout = io.MultiWriter(c.Stdout, tail)
	}
	if c.Stderr != nil {
		stderr = io.MultiWriter(c.Stderr, tail)
	}
	status, err := i.run(ctx, c, stdout, stderr)
	if status == 0 && err == nil {
		return nil
	}
	return &host.RunError{Place: i.ref.Name, Command: c.Args, Status: status, Output: tail.String(), Err: err}
}

func (i inside) run(ctx context.Context, c host.Command, stdout, stderr io.Writer) (int, error) {
	what := i.engine.begin(ctx, "Run", i.ref.Name)
	if what.err != nil {
		return -1, what.err
	}
	i.engine.mu.Lock()
	n, err := i.running()
	if err != nil {
		i.engine.mu.Unlock()
		return -1, err
	}
	n.commands = append(n.commands, c)
	life := n.life
	i.engine.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(life, func() { cancel(errors.New("the node stopped")) })()
	if err := what.halfway(ctx); err != nil {
		return -1, err
	}
	sh := shell{ctx: ctx, place: i, command: c, stdout: stdout, stderr: stderr}
	return sh.run(c.Args)
}

// Put stores files, each whole or not at all.
func (i inside) Put(ctx context.Context, files ...host.File) error {
	what := i.engine.begin(ctx, "Put", i.ref.Name)
	if what.err != nil {
		return what.err
	}
	if err := what.halfway(ctx); err != nil {
		return err
	}
	i.engine.mu.Lock()
	defer i.engine.mu.Unlock()
	n, err := i.running()
	if err != nil {
		return err
	}
	for _, f := range files {
		f.Content = append([]byte(nil), f.Content...)
		if err := i.engine.put(n, f); err != nil {
			return err
		}
	}
	return nil
}

// Dial connects to a port on which Listen has set an answer.
func (i inside) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	what := i.engine.begin(ctx, "Dial", i.ref.Name)
	if what.err != nil {
		return nil, what.err
	}
	if err := what.halfway(ctx); err != nil {
		return nil, err
	}
	i.engine.mu.Lock()
	defer i.engine.mu.Unlock()
	n, err := i.running()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	answer, ok := n.listeners[port]
	if !ok && i.engine.Answers != nil {
		answer, ok = i.engine.Answers, true
	}
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	go answer(far)
	return near, nil
}

// Listen makes a port of a running node answer until the node stops.
func (e *Engine) Listen(ref engine.Ref, port string, answer func(net.Conn)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	n, err := inside{e, ref}.running()
	if err != nil {
		return err
	}
	n.listeners[port] = answer
	return nil
}
