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
	"orrery/internal/host/devices"
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
	if err := c.cleanUp(ctx, r); err != nil {
		return err
	}
	mounts, err := e.Mounts(r)
	if err != nil {
		return err
	}
	s := start{c, r, c.links(r), c.overlay(e.Store, r, mounts), mounts, nil}
	if s.lent, err = c.claimDevices(ctx, r); err != nil {
		return err
	}
	s.root.Devices, s.root.DevicesAt = deviceFiles(s.lent), c.devicesDir()
	if err := s.run(ctx); err != nil {
		if !c.running() {
			err = errors.Join(err, c.releaseDevices(ctx))
		}
		return err
	}
	return nil
}

// A start boots a node, from writing its configuration until its init answers.
type start struct {
	container
	r      *nodedir.Record
	links  links
	root   *rootfs.Overlay
	mounts []nodedir.Mount
	lent   []devices.Lent
}

func (s start) run(ctx context.Context) error {
	if err := s.writeConfig(); err != nil {
		return err
	}
	if err := os.Remove(s.log()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(s.startingFile(), nil, 0o600); err != nil {
		return err
	}
	defer os.Remove(s.startingFile()) //nolint:errcheck // what is left of it ends the node at the next sweep
	if err := s.links.passThrough(ctx); err != nil {
		return err
	}
	if err := s.boot(context.WithoutCancel(ctx)); err != nil {
		err = s.problem(err)
		return errors.Join(err, s.returnHardware(ctx, s.r))
	}
	cgroup.UpdateWeights(s.ref.Site) // LXC has just made the group
	if err := s.group().CloseDisks(s.r.Name, s.r.Limits.Disk); err != nil {
		return err
	}
	if limits, ok := s.group().InForce(s.r.Limits); !ok {
		return problem.New(problem.Failed, "node %s: limits read back as %+v instead of %+v", s.r.Name, limits, s.r.Limits).
			At(s.group().Name()).
			Try("orrery doctor shows which limits this host can set")
	}
	s.awaitSystemd(ctx, s.r)
	return s.checkAlive(ctx)
}

// boot runs lxc-start, which returns when the node's init has been started.
//
// LXC's monitor listens on an abstract socket. Any user of the host could bind its name first and
// so keep the node from starting. Abstract names belong to a network namespace, so the monitor gets
// one that no other process can enter. The kernel removes the namespace when the monitor ends. The
// inner ends of the node's links are in this namespace.
func (s start) boot(ctx context.Context) error {
	space, err := host.NewNetNS()
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

// launch runs lxc-start in the mount namespace of the node's root and the network namespace of its
// links.
func (s start) launch(ctx context.Context, space *os.File) error {
	args := []string{"lxc-start", "--daemon", "--name", s.name, "--lxcpath", s.Path(), "--rcfile", s.config(),
		"--pidfile", s.pidfile(), "--logfile", s.log(), "--logpriority", "WARN"}
	return host.RunOn(ctx, s.r.Name, args, host.Command{Args: args},
		func(streams host.Streams) (started host.Process, err error) {
			err = s.root.WithMounted(func() error {
				if err := seccompPolicy(s.r).Install(); err != nil {
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

// seccompPolicy returns which system calls a node may make.
func seccompPolicy(r *nodedir.Record) seccomp.Policy {
	return seccomp.Policy{
		IOUring:    slices.Contains(r.Syscalls, site.IOUring),
		Socketcall: slices.Contains(r.Syscalls, site.Socketcall),
	}
}

// awaitSystemd waits until the node's systemd listens to systemctl(1), so that callers need not poll
// it from inside. It ignores a node that does not get that far, as the next command in the node
// will fail.
func (p processes) awaitSystemd(ctx context.Context, r *nodedir.Record) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	for !p.listens(ctx, r) {
		// Init is ending, or the node reboots and its next init is about to start.
		if p.monitor() == 0 || host.Sleep(ctx, 5*time.Millisecond) != nil {
			return
		}
	}
}

// listens waits until the systemd of the node's present init listens, and reports whether it does.
func (p processes) listens(ctx context.Context, r *nodedir.Record) bool {
	init, err := p.awaitInit(ctx, r)
	if err != nil {
		return false
	}
	defer init.Close()
	root, err := tree.Open(fmt.Sprintf("/proc/%d/root/.", init.PID))
	if err != nil {
		return false
	}
	defer root.Close()
	for {
		if _, err := root.Lstat("run/systemd/private"); err == nil {
			return true
		}
		if init.Ended() || host.Sleep(ctx, 5*time.Millisecond) != nil {
			return false
		}
	}
}

// awaitInit opens the node's init as soon as it has the node's root. While a node reboots, init is
// a copy of its monitor first.
func (p processes) awaitInit(ctx context.Context, r *nodedir.Record) (*enter.Init, error) {
	for {
		init, err := p.openInit(r)
		if !errors.Is(err, enter.ErrNotReady) {
			return init, err
		}
		if err := host.Sleep(ctx, time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// cleanUp removes what a killed monitor left behind: interfaces and control groups. If a group
// existed, LXC would not start a node under its name.
func (c container) cleanUp(ctx context.Context, r *nodedir.Record) error {
	cgroup.Remove(c.groups()...)
	err := c.links(r).remove()
	return errors.Join(err, c.returnHardware(ctx, r))
}

// errorsInLog returns the first three errors in LXC's log.
func (s start) errorsInLog() string {
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

// problem returns why a node does not start: the errors in LXC's log, or else what lxc-start
// printed.
func (s start) problem(err error) error {
	if why := s.errorsInLog(); why != "" {
		err = errors.New(why)
	}
	return problem.New(problem.Failed, "node %s could not start", s.ref.Name).At(s.log()).Because(err).
		Try("orrery doctor shows what this host lacks")
}
