package lxc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/enter"
	"orrery/internal/host/seccomp"
	"orrery/internal/image/rootfs"
	"orrery/internal/problem"
	"orrery/internal/site"
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
	return start{c, r, c.links(r), c.overlay(e.Store, r, mounts), mounts}.run(ctx)
}

// A start leads a node from its configuration to its first sign of life.
type start struct {
	container
	r      *nodedir.Record
	links  links
	root   *rootfs.Overlay
	mounts []nodedir.Mount
}

func (s start) run(ctx context.Context) error {
	if err := s.writeConfig(); err != nil {
		return err
	}
	if err := os.Remove(s.log()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(s.starting(), nil, 0o600); err != nil {
		return err
	}
	defer os.Remove(s.starting()) //nolint:errcheck // what is left of it ends the node at the next sweep
	if err := s.links.passThrough(ctx); err != nil {
		return err
	}
	if err := s.boot(context.WithoutCancel(ctx)); err != nil {
		err = s.problem(err)
		return errors.Join(err, s.links.giveBack(ctx))
	}
	cgroup.Weigh(s.ref.Site) // LXC made the group
	if limits, ok := s.group().Holds(s.r.Limits); !ok {
		return problem.New(problem.Failed, "node %s: limits read back as %+v instead of %+v", s.r.Name, limits, s.r.Limits).
			At(s.group().Name()).
			Try("orrery doctor tells which limits this host can set")
	}
	s.awaitOrders(ctx, s.r)
	return s.checkAlive(ctx)
}

// boot runs lxc-start, which returns when the node's init has been started.
//
// LXC's monitor listens at a socket with an abstract name, which anybody on the host could bind
// first and so keep the node from starting. Such names belong to a network namespace, so the
// monitor has one that nobody else can enter. It goes with the monitor. In it are the inner ends of
// the node's links.
func (s start) boot(ctx context.Context) error {
	space, err := host.NewNetwork()
	if err != nil {
		return err
	}
	defer space.Close()
	if err = s.links.attach(space); err == nil {
		err = s.launch(ctx, space)
	}
	if err != nil {
		err = errors.Join(err, s.links.detach(space))
	}
	return err
}

// launch runs lxc-start where the node's root is mounted, and where its links are.
func (s start) launch(ctx context.Context, space *os.File) error {
	args := []string{"lxc-start", "--daemon", "--name", s.name, "--lxcpath", s.Path(), "--rcfile", s.config(),
		"--pidfile", s.pidfile(), "--logfile", s.log(), "--logpriority", "WARN"}
	return host.RunOn(ctx, s.r.Name, args, host.Command{Args: args},
		func(streams host.Streams) (started host.Underway, err error) {
			err = s.root.Within(func() error {
				if err := calls(s.r).Install(); err != nil {
					return err
				}
				if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
					return os.NewSyscallError("setns", err)
				}
				process, err := enter.Launcher{Args: args}.Launch(ctx, streams)
				started = process
				return err
			})
			return started, err
		})
}

// calls are the system calls that a node may make.
func calls(r *nodedir.Record) seccomp.Policy {
	return seccomp.Policy{
		IOUring:    slices.Contains(r.Syscalls, site.IOUring),
		Socketcall: slices.Contains(r.Syscalls, site.Socketcall),
	}
}

// awaitOrders waits until the node's systemd listens to systemctl(1), so that nobody has to ask it
// again and again from inside. A node that does not come so far is the business of whoever gives it
// orders.
func (p processes) awaitOrders(ctx context.Context, r *nodedir.Record) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	init, err := p.awaitInit(ctx, r)
	if err != nil {
		return
	}
	defer init.Close()
	root, err := tree.Open(fmt.Sprintf("/proc/%d/root/.", init.PID))
	if err != nil {
		return
	}
	defer root.Close()
	for {
		if _, err := root.Lstat("run/systemd/private"); err == nil || init.Ended() ||
			host.Pause(ctx, 5*time.Millisecond) != nil {
			return
		}
	}
}

// awaitInit holds the node's init as soon as it has the node's root: while a node reboots, it is a
// copy of its monitor first.
func (p processes) awaitInit(ctx context.Context, r *nodedir.Record) (*enter.Init, error) {
	for {
		init, err := p.hold(r)
		if !errors.Is(err, enter.ErrNotReady) {
			return init, err
		}
		if err := host.Pause(ctx, time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// clear removes what a monitor that was killed could not: control groups, under whose names LXC would
// not start another node, and interfaces.
func (c container) clear(ctx context.Context, r *nodedir.Record) error {
	cgroup.Remove(c.groups()...)
	err := c.links(r).remove()
	return errors.Join(err, c.links(r).giveBack(ctx))
}

// why returns the first errors in LXC's log, which is where it says what went wrong.
func (s start) why() string {
	text, err := os.ReadFile(s.log())
	if err != nil {
		return ""
	}
	var errs []string
	for _, line := range strings.Split(string(text), "\n") {
		if _, message, ok := strings.Cut(line, " ERROR "); ok {
			errs = append(errs, strings.TrimSpace(message))
		}
	}
	return strings.Join(errs[:min(3, len(errs))], "\n")
}

// problem says why a node does not start: what LXC's log says, or else what lxc-start printed.
func (s start) problem(err error) error {
	if why := s.why(); why != "" {
		err = errors.New(why)
	}
	return problem.New(problem.Failed, "node %s does not start", s.ref.Name).At(s.log()).Because(err).
		Try("orrery doctor tells what this host lacks")
}
