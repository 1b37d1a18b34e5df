package lxc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/cgroup"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/network"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// Start boots a node.
func (e *Engine) Start(ctx context.Context, ref engine.Ref) error {
	c := e.container(ref)
	r, err := e.Record(c.ref)
	if err != nil {
		return err
	}
	if c.running() {
		return c.thaw()
	}
	if err := c.clear(ctx, r); err != nil {
		return err
	}
	mounts, err := e.Mounts(r)
	if err != nil {
		return err
	}
	if err := e.writeConfig(c, r, mounts); err != nil {
		return err
	}
	if err := os.Remove(c.log()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	lxcStart, err := exec.LookPath("lxc-start")
	if err != nil {
		return problem.New(problem.Unable, "LXC is not installed on this host").Try("apt-get install lxc; orrery doctor tells what else is missing")
	}
	cmd := host.Program(context.WithoutCancel(ctx), lxcStart, "--daemon", "--name", c.name, "--lxcpath", c.Path(), "--rcfile", c.config(),
		"--pidfile", c.pidfile(), "--logfile", c.log(), "--logpriority", "WARN")
	cmd.Env = []string{"PATH=" + host.Path}
	tail := &host.Tail{}
	cmd.Stdout, cmd.Stderr = tail, tail
	if err := os.WriteFile(c.starting(), nil, 0o600); err != nil {
		return err
	}
	defer os.Remove(c.starting()) //nolint:errcheck // what is left of it ends the node at the next sweep
	if err := c.passThrough(ctx, r); err != nil {
		return err
	}
	if err := network.Guard(ctx, network.Ports(&r.Node)); err != nil {
		return errors.Join(err, c.giveBack(ctx, r))
	}
	o := e.overlay(c, r, mounts)
	if o.IDs.Size > 0 {
		o.Namespace = c.namespace()
	}
	if err := o.Spawn(cmd); err != nil {
		err = c.startProblem(err, "")
		return errors.Join(err, c.giveBack(ctx, r))
	}
	if err := cmd.Wait(); err != nil {
		err = c.startProblem(err, c.why(tail.String()))
		return errors.Join(err, c.giveBack(ctx, r))
	}
	if has, ok := c.group().Holds(r.Limits); !ok {
		return problem.New(problem.Failed, "node %s: limits read back as %+v instead of %+v", r.Name, has, r.Limits).At(c.group().Name()).
			Try("orrery doctor tells which limits this host can set")
	}
	c.awaitOrders(ctx)
	return e.checkAlive(ctx, c, r)
}

// awaitOrders waits until the node's systemd listens to systemctl(1), so that nobody has to ask it again and again from inside. A
// node that does not come so far is the business of whoever gives it orders.
func (c container) awaitOrders(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if c.listens() || !c.running() || host.Pause(ctx, 5*time.Millisecond) != nil {
			return
		}
	}
}

// listens reports whether the node's systemd has made its socket.
func (c container) listens() bool {
	root, err := tree.Open(fmt.Sprintf("/proc/%d/root/.", c.init()))
	if err != nil {
		return false
	}
	defer root.Close()
	_, err = root.Lstat("run/systemd/private")
	return err == nil
}

// clear removes what a monitor that was killed could not: control groups, under whose names LXC would
// not start another node, and interfaces.
func (c container) clear(ctx context.Context, r *nodedir.Record) error {
	cgroup.Remove(c.groups()...)
	var ends []string
	for _, nic := range r.NICs {
		ends = append(ends, nic.HostEnd)
	}
	err := network.RemoveLinks(ends)
	unguarded := network.Unguard(ctx, ends)
	return errors.Join(err, unguarded, c.giveBack(ctx, r))
}

// why picks the first error out of LXC's log, which is where it says what went wrong.
func (c container) why(output string) string {
	text, err := os.ReadFile(c.log())
	if err != nil {
		return output
	}
	var errs []string
	for _, line := range strings.Split(string(text), "\n") {
		if _, message, ok := strings.Cut(line, " ERROR "); ok {
			errs = append(errs, strings.TrimSpace(message))
		}
	}
	if len(errs) == 0 {
		return output
	}
	return strings.Join(errs[:min(3, len(errs))], "\n")
}

func (c container) startProblem(err error, detail string) error {
	if detail != "" {
		err = fmt.Errorf("%w\n%s", err, detail)
	}
	return problem.New(problem.Failed, "node %s does not start", c.ref.Name).At(c.log()).Because(err).
		Try("orrery doctor tells what this host lacks")
}
