package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/image/access"
	"orrery/internal/image/rootfs"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// scratchIDs are the ids that scratch containers have on the host: a range of their own, far from those of nodes and users.
var scratchIDs = rootfs.IDs{First: 1900000000, Size: 65536}

// A scratch is the container in which a role layer is filled: the base below, the layer to be on top, a network without links, no
// init system, nobody's ids. It lives no longer than the process that builds in it.
type scratch struct {
	name   string
	dir    string        // its mount points and configuration
	env    []string      // of every command in it
	attach string        // the program by which commands run in it
	ended  chan struct{} // closed when the container is gone
	output host.Tail     // of lxc-start
	space  *os.File      // its network namespace
}

var _ host.Runner = (*scratch)(nil)

// scratchDir is where a scratch has its mount points: outside of the store, through which its root could not go.
func scratchDir(s *Store, digest string) string { return filepath.Join(s.state, "build", digest) }

// scratchName names a scratch for LXC and its cgroups; the state directory is part of it, because cgroups are the host's.
func scratchName(s *Store, digest string) string {
	return digest[:min(len(digest), 16)] + "-" + spec.DigestBytes([]byte(s.state))[:8]
}

// scratchConfig is LXC's configuration of a scratch. LXC's own profiles come first: they drop what must not be had.
const scratchConfig = `lxc.include = /usr/share/lxc/config/common.conf
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

// startScratch starts the container on a root of which the layers are given.
func startScratch(ctx context.Context, g *staging, overlay *rootfs.Overlay, env []string, binds []mountBind) (*scratch, error) {
	if _, err := exec.LookPath("lxc-start"); err != nil {
		return nil, problem.New(problem.Unable, "LXC is not installed on this host").Try("apt-get install lxc")
	}
	attach, err := host.Seal("lxc-attach")
	if err != nil {
		return nil, err
	}
	c := &scratch{
		env: env, attach: attach, name: scratchName(g.store, g.digest), dir: scratchDir(g.store, g.digest),
		ended: make(chan struct{}),
	}
	if err := os.MkdirAll(filepath.Join(c.dir, "rootfs"), 0o711); err != nil {
		return nil, err
	}
	overlay.Target, overlay.IDs = filepath.Join(c.dir, "rootfs"), scratchIDs
	overlay.Namespace = filepath.Join(c.dir, "user-namespace")
	config := fmt.Sprintf(scratchConfig, c.dir, scratchIDs.First, scratchIDs.Size, c.name, overlay.Namespace) + rootfs.DeviceRules(rootfs.Devices)
	for i, b := range binds {
		from := filepath.Join(c.dir, fmt.Sprintf("bind%d", i))
		overlay.Binds = append(overlay.Binds, rootfs.Bind{Source: b.source, Target: from, ReadOnly: b.readOnly})
		config += fmt.Sprintf("lxc.mount.entry = %s %s none %s 0 0\n", filepath.Join(from, b.file), b.target, b.options())
	}
	file := filepath.Join(c.dir, "config")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	cmd := host.Program(context.Background(), "lxc-start", "-F", "-n", c.name, "-P", c.dir, "-f", file, "-l", "NOTICE", "-o", filepath.Join(c.dir, "lxc.log"))
	cmd.Env = []string{"PATH=" + host.Path, "LANG=C.UTF-8"}
	cmd.Stdout, cmd.Stderr = &c.output, &c.output
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := c.spawn(overlay, cmd); err != nil {
		return nil, problem.New(problem.Failed, "the scratch container could not be started").Because(err)
	}
	err = c.wait(ctx)
	if err == nil {
		err = c.openWay(ctx, g.way)
	}
	if err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// openWay lets those in the container out by the way.
func (c *scratch) openWay(ctx context.Context, w *access.Way) (err error) {
	var out bytes.Buffer
	args := []string{"lxc-info", "-n", c.name, "-P", c.dir, "-p", "-H"}
	if err := host.Exec(ctx, "this host", args, host.Command{Args: args, Stdout: &out}, func(e *exec.Cmd) { e.Env = []string{"PATH=" + host.Path} }); err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil || pid <= 1 {
		return problem.New(problem.Failed, "the scratch container has no init").Because(err)
	}
	if c.space, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", pid)); err != nil {
		return err
	}
	return w.Open(c.space)
}

// spawn is Overlay.Spawn for a command that must die with this process: its death signal is tied to the thread that starts it,
// which therefore stays until the command has ended.
func (c *scratch) spawn(overlay *rootfs.Overlay, cmd *exec.Cmd) error {
	started := make(chan error)
	host.OnOwnThread(func() {
		err := overlay.Enter()
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err == nil {
			cmd.Wait() //nolint:errcheck // how it ended is in its output
			close(c.ended)
		}
	})
	return <-started
}

// wait waits until commands run in the container.
func (c *scratch) wait(ctx context.Context) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := c.Run(ctx, host.Command{Args: []string{"/bin/true"}})
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
		case <-time.After(10 * time.Millisecond):
		}
		if gone || time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(c.dir, "lxc.log"))
			text := strings.TrimSpace(c.output.String() + "\n" + string(log))
			return problem.New(problem.Failed, "the scratch container did not start").Because(errors.Join(err, errors.New(text))).
				Try("`orrery doctor` says what this host lacks")
		}
	}
}

// stop ends the container and all in it.
func (c *scratch) stop() {
	// Killing its init lets lxc-start remove the cgroups; what it could not is removed with the staging.
	cmd := host.Program(context.Background(), "lxc-stop", "-k", "-n", c.name, "-P", c.dir)
	cmd.Run() //nolint:errcheck // it may have ended by itself
	select {
	case <-c.ended:
	case <-time.After(5 * time.Second):
		killCgroups(cgroupsOf(c.name))
		<-c.ended
	}
	c.space.Close()
}

// Run runs a command in the container.
func (c *scratch) Run(ctx context.Context, cmd host.Command) error {
	args := cmd.Args
	if cmd.User != "" && cmd.User != "root" {
		args = append([]string{"runuser", "-u", cmd.User, "--"}, args...)
	}
	args = append([]string{"lxc-attach", "-n", c.name, "-P", c.dir, "--"}, args...)
	return host.Exec(ctx, "scratch container", args, cmd, func(e *exec.Cmd) {
		// Not on the command line, where every user of the host could read it.
		e.Env = append(append([]string{}, c.env...), cmd.Env...)
		e.Dir, e.Path, e.Err = "/", c.attach, nil
	})
}

// Put writes files of the container.
func (c *scratch) Put(ctx context.Context, files ...host.File) error {
	return host.PutByCommand(ctx, c, files...)
}

// Dial connects from the container.
func (c *scratch) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = host.InNetwork(c.space, func() error {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// A mountBind is a directory of the host, or a file in one, that the scratch sees.
type mountBind struct {
	source   string // directory of the host
	file     string // "": the directory itself
	target   string // in the container, without the first slash
	readOnly bool
	make     bool // make the place to mount on
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

// cgroupsOf gives the cgroups of a scratch, in whatever hierarchies this host has.
func cgroupsOf(name string) []string {
	var dirs []string
	for _, part := range []string{name, name + ".monitor", name + ".pivot"} {
		for _, pattern := range []string{"/sys/fs/cgroup/orrery-build-", "/sys/fs/cgroup/*/orrery-build-"} {
			found, _ := filepath.Glob(pattern + part)
			dirs = append(dirs, found...)
		}
	}
	return dirs
}

// killCgroups kills all processes in cgroups and removes those.
func killCgroups(dirs []string) {
	for _, dir := range dirs {
		for try := range 50 {
			remaining := killCgroup(dir)
			if !remaining {
				break
			}
			time.Sleep(time.Duration(try) * time.Millisecond)
		}
	}
}

// killCgroup tells whether the cgroup still exists.
func killCgroup(dir string) bool {
	var inner []string
	filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error { //nolint:errcheck // it may vanish at any time
		if err == nil && e.IsDir() {
			inner = append(inner, path)
		}
		return nil
	})
	for i := len(inner) - 1; i >= 0; i-- {
		if text, err := os.ReadFile(filepath.Join(inner[i], "cgroup.procs")); err == nil {
			for _, word := range strings.Fields(string(text)) {
				var pid int
				if _, err := fmt.Sscan(word, &pid); err == nil && pid > 1 {
					syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
				}
			}
		}
		unix.Rmdir(inner[i]) //nolint:errcheck // tried again
	}
	_, err := os.Lstat(dir)
	return err == nil
}
