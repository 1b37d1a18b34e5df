package image

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/enter"
	"orrery/internal/host/process"
	"orrery/internal/host/seccomp"
	"orrery/internal/image/rootfs"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// containerIDs are the ids of scratch containers on the host: a separate range, far from those of
// nodes and users.
var containerIDs = rootfs.IDs{First: 1900000000, Size: 65536}

// A buildContainer is the container in which a role layer is filled. It has the base below, the new layer
// on top, a network without links, no init system, and ids that no user has. It ends with the
// process that builds in it.
type buildContainer struct {
	name    string
	dir     string         // its mount points and configuration
	env     []string       // environment of every command in it
	monitor *enter.Process // lxc-start
	ended   chan struct{}  // closed when the container has ended
	failure error          // the error of lxc-start, once it has ended
	space   *os.File       // its network namespace
}

var _ host.Runner = (*buildContainer)(nil)

// containerDir returns the directory for the mount points of a scratch. It is outside of the store,
// because the root user of the container may not enter the store.
func containerDir(s *Store, digest string) string { return filepath.Join(s.state, "build", digest) }

// containerName names a scratch for LXC and its control groups. The name depends on the state
// directory, because control groups are shared by the whole host.
func containerName(s *Store, digest string) string {
	return digest[:min(len(digest), 16)] + "-" + spec.DigestBytes([]byte(s.state))[:8]
}

// containerConfig is LXC's configuration of a scratch. LXC's own profiles come first: they drop
// dangerous capabilities.
const containerConfig = `lxc.include = /usr/share/lxc/config/common.conf
lxc.include = /usr/share/lxc/config/userns.conf
lxc.uts.name = build
lxc.rootfs.path = dir:%[1]s/rootfs
lxc.idmap = u 0 %[2]d %[3]d
lxc.idmap = g 0 %[2]d %[3]d
lxc.namespace.share.user = %[5]s
# What others have put into these profiles for every container is not for builds: lxcfs, which Debian recommends with LXC, would mount something below /sys.
lxc.hook.mount =
lxc.hook.post-stop =
# A loopback, and no other link: the way out is by proxies on it (way).
lxc.net.0.type = empty
lxc.net.0.flags = up
# The filter is on the thread that starts LXC (package seccomp).
lxc.seccomp.profile =
lxc.apparmor.profile = unconfined
lxc.console.path = none
lxc.cgroup.dir.container = orrery-build-%[4]s
lxc.cgroup.dir.monitor = orrery-build-%[4]s.monitor
lxc.cgroup.dir.monitor.pivot = orrery-build-%[4]s.pivot
lxc.init.cmd = /bin/sleep infinity
# No sysfs: builds have no business there.
lxc.mount.auto =
lxc.mount.auto = proc:mixed
lxc.mount.entry = tmpfs run tmpfs mode=755,nosuid,nodev,create=dir 0 0
`

// startContainer starts a container whose root consists of the given layers.
func startContainer(ctx context.Context, g *staging, overlay *rootfs.Overlay, env []string,
	binds []mountBind) (*buildContainer, error) {
	c := &buildContainer{
		env: env, name: containerName(g.store, g.digest), dir: containerDir(g.store, g.digest), ended: make(chan struct{}),
	}
	if err := os.MkdirAll(filepath.Join(c.dir, "rootfs"), 0o711); err != nil {
		return nil, err
	}
	overlay.Target, overlay.IDs = filepath.Join(c.dir, "rootfs"), containerIDs
	overlay.Namespace = filepath.Join(c.dir, "user-namespace")
	config := fmt.Sprintf(containerConfig, c.dir, containerIDs.First, containerIDs.Size, c.name, overlay.Namespace) +
		rootfs.DeviceRules(rootfs.Devices)
	for i, b := range binds {
		from := filepath.Join(c.dir, fmt.Sprintf("bind%d", i))
		overlay.Binds = append(overlay.Binds, rootfs.Bind{Source: b.source, Target: from, ReadOnly: b.readOnly})
		config += fmt.Sprintf("lxc.mount.entry = %s %s none %s 0 0\n", filepath.Join(from, b.file), b.target, b.options())
	}
	if err := os.WriteFile(c.config(), []byte(config), 0o600); err != nil {
		return nil, err
	}
	if err := c.spawn(overlay); err != nil {
		return nil, problem.New(problem.Failed, "the scratch container could not be started").Because(err)
	}
	err := c.wait(ctx)
	if err == nil {
		err = g.way.Open(c.space)
	}
	if err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *buildContainer) config() string { return filepath.Join(c.dir, "config") }

// spawn starts lxc-start where the overlay is mounted, with a filter of system calls. It runs in
// its own network namespace, so that no other process can bind the name of LXC's socket there. It
// must die with this process. Its death signal is tied to the thread that starts it, so that thread
// stays until it has ended.
func (c *buildContainer) spawn(overlay *rootfs.Overlay) error {
	args := []string{"lxc-start", "-F", "-n", c.name, "-P", c.dir, "-f", c.config(), "-l", "NOTICE", "-o",
		filepath.Join(c.dir, "lxc.log")}
	started := make(chan error, 1)
	host.GoOnLockedThread(func() {
		defer close(c.ended)
		c.failure = host.RunOn(context.Background(), "lxc-start", args, host.Command{Args: args},
			func(streams host.Streams) (host.Process, error) {
				err := c.launch(overlay, args, streams)
				started <- err
				return c.monitor, err
			})
	})
	return <-started
}

// launch starts lxc-start from the calling thread.
func (c *buildContainer) launch(overlay *rootfs.Overlay, args []string, streams host.Streams) error {
	space, err := host.NewNetNS()
	if err != nil {
		return err
	}
	defer space.Close()
	if err := overlay.Enter(); err != nil {
		return err
	}
	if err := (seccomp.Policy{}).Install(); err != nil {
		return err
	}
	if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
		return os.NewSyscallError("setns", err)
	}
	c.monitor, err = enter.Launcher{Args: args, Dies: true}.Launch(context.Background(), streams)
	return err
}

// startTimeout is how long a scratch may take until commands can run in it.
const startTimeout = 30 * time.Second

// wait waits until commands can run in the container. It opens the container's network namespace.
func (c *buildContainer) wait(ctx context.Context) error {
	deadline := time.Now().Add(startTimeout)
	for {
		err := c.openSpace()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		gone := false
		select {
		case <-c.ended:
			gone = true
			err = errors.Join(err, c.failure)
		case <-time.After(2 * time.Millisecond):
		}
		if gone || time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(c.dir, "lxc.log"))
			return problem.New(problem.Failed, "the scratch container did not start").
				Because(errors.Join(err, errors.New(strings.TrimSpace(string(log))))).
				Try("`orrery doctor` lists what this host lacks")
		}
	}
}

// openSpace opens the network namespace of the container if commands can run in it.
func (c *buildContainer) openSpace() error {
	init, err := c.hold()
	if err != nil {
		return err
	}
	defer init.Close()
	c.space, err = init.Open("ns/net")
	return err
}

// hold returns a handle of the container's init process.
func (c *buildContainer) hold() (*enter.Init, error) {
	pid := c.monitor.PID()
	children := process.Host.Children(pid)
	if len(children) == 0 {
		return nil, enter.ErrNotReady
	}
	init, err := enter.OpenInit(children[0], pid, containerIDs.Map())
	if err == nil && c.monitor.Reaped() {
		// this may be the pid of another build's monitor, whose container looks the same
		init.Close()
		err = enter.ErrNotReady
	}
	return init, err
}

// stop ends the container and everything in it.
func (c *buildContainer) stop() {
	if c.space != nil {
		c.space.Close()
	}
	killContainer(c.name)
	_ = c.monitor.Kill() // if it has not ended with its container
	<-c.ended
}

// killTimeout is how long the processes of a scratch may take to end after they are killed.
const killTimeout = 10 * time.Second

// killContainer kills all processes of a scratch and removes its control groups.
func killContainer(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	var groups []cgroup.Group
	for _, suffix := range []string{"", ".monitor", ".pivot"} {
		g := cgroup.Named("orrery-build-" + name + suffix)
		_ = g.Kill(ctx) // the next build finds what remains
		groups = append(groups, g)
	}
	cgroup.Remove(groups...)
}

// Run runs a command in the container.
func (c *buildContainer) Run(ctx context.Context, cmd host.Command) error {
	in := enter.Container{
		Name: "scratch container", Hold: c.hold, Root: containerIDs.First, Group: cgroup.Named("orrery-build-" + c.name),
		Env: c.env,
	}
	return in.Run(ctx, cmd)
}

// Put writes files in the container.
func (c *buildContainer) Put(ctx context.Context, files ...host.File) error {
	return host.PutByCommand(ctx, c, files...)
}

// Dial connects from the container.
func (c *buildContainer) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = host.InNetNS(c.space, func() error {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// A mountBind is a directory of the host, or a file in one, that is mounted in a scratch.
type mountBind struct {
	source   string // directory of the host
	file     string // "" means the directory itself
	target   string // in the container, without the first slash
	readOnly bool
	make     bool // create the mount point
}

func (b mountBind) options() string {
	o := "bind"
	if b.readOnly {
		o += ",ro"
	}
	if b.make {
		o += ",create=dir"
	}
	return o
}
