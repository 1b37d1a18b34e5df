// Package confine starts programs that a node may take over, such as QEMU, with as few rights as
// possible: under a user id of their own, without capabilities, in namespaces of their own, and
// with a root that contains only what they need. Whatever else they need is handed to them open.
package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/seccomp"
	"orrery/internal/problem"
)

// A Cell is what a program sees of this host.
type Cell struct {
	At   string // an empty directory, on which its root is mounted where nobody else sees it
	User int    // as which it runs, and the group of the same number
	// files and directories of the host, at the same paths, which it may read; one that is not there
	// is left out
	Sees    []string
	Devices []string // of the host's /dev, which it may use beside those that all programs expect
	Locked  int64    // bytes of its memory that may have to stay where they are; 0: as many as everybody's
}

// QEMU is what QEMU sees, beside itself and what its machine boots from: libraries and firmware,
// which no package keeps from anybody. One that is not the distribution's, in /opt or /usr/local,
// brings its own.
func QEMU(program string) []string {
	all := []string{
		"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/qemu", "/usr/share/seabios",
		"/usr/share/OVMF", "/usr/share/qemu-efi-aarch64",
	}
	prefix := filepath.Dir(filepath.Dir(program))
	if prefix == "/" || prefix == "/usr" {
		return all
	}
	for _, its := range []string{"lib", "lib64", "share/qemu", "share/seabios", "share/OVMF"} {
		all = append(all, filepath.Join(prefix, its))
	}
	return all
}

// Sandbox is the value of QEMU's option -sandbox: what it never needs when all that it has was opened before.
const Sandbox = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

// Start starts a command in the cell, and in a control group. It is to be called by work that has a
// thread of its own (host.Apart): the thread goes there first. The command has namespaces of its
// own, and of open files those that it is given.
func (c Cell) Start(cmd *exec.Cmd, in cgroup.Group) error {
	name := filepath.Base(cmd.Path)
	var limits []string
	if c.Locked > 0 {
		limits = append(limits, fmt.Sprintf("--memlock=%d", c.Locked))
	}
	if err := bound(cmd, limits...); err != nil {
		return err
	}
	c.Sees = append(slices.Clone(c.Sees), cmd.Path)
	joined, err := in.Join(cmd)
	if err != nil {
		return err
	}
	defer joined()
	if err := c.enter(); err != nil {
		return fmt.Errorf("a cell for %s: %w", name, err)
	}
	if err := host.LeaveCaller(); err != nil {
		return err
	}
	if err := seccomp.KeepHostsEnd(); err != nil {
		return err
	}
	attr := attributes(cmd)
	attr.Cloneflags |= unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWPID
	attr.Credential = &syscall.Credential{Uid: uint32(c.User), Gid: uint32(c.User)}
	lowered, err := raiseLocked(c.Locked)
	if err != nil {
		return err
	}
	defer lowered()
	return cmd.Start()
}

// raising keeps others from lowering what somebody has raised.
var raising sync.Mutex

// raiseLocked raises how much memory what we start may have locked at most, until lowered is
// called: a user who is not root can only be given less than we may have.
func raiseLocked(bytes int64) (lowered func(), err error) {
	if bytes == 0 {
		return func() {}, nil
	}
	raising.Lock()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &before); err != nil {
		raising.Unlock()
		return nil, os.NewSyscallError("getrlimit", err)
	}
	if before.Max >= uint64(bytes) {
		raising.Unlock()
		return func() {}, nil
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: before.Cur, Max: uint64(bytes)}); err != nil {
		raising.Unlock()
		return nil, os.NewSyscallError("setrlimit", err)
	}
	return func() {
		_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &before)
		raising.Unlock()
	}, nil
}

// bound has a command started by prlimit(1), which is then the command: with other limits than we
// have, from the first moment on. A guest's memory, which QEMU and virtiofsd have, shall be in no
// core file.
func bound(cmd *exec.Cmd, limits ...string) error {
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		return problem.New(problem.Unable, "prlimit is not installed on this host").Try("install the package util-linux")
	}
	args := append([]string{"prlimit", "--core=0"}, limits...)
	cmd.Path, cmd.Args = prlimit, append(append(args, "--", cmd.Path), cmd.Args[1:]...)
	return nil
}

// attributes returns those of a command that outlives us, and that learns nothing from our environment.
func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.Dir, cmd.Env, cmd.SysProcAttr.Setsid = "/", []string{}, true
	return cmd.SysProcAttr
}

// enter moves the calling thread into a mount namespace with the cell as its root.
func (c Cell) enter() error {
	if err := c.fill(); err != nil {
		return err
	}
	return c.shut()
}

// fill moves the calling thread into a mount namespace, and makes the cell there.
func (c Cell) fill() error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("make mounts private", err)
	}
	if err := unix.Mount("orrery", c.At, "tmpfs", unix.MS_NOSUID, "mode=755,size=64k"); err != nil {
		return &os.PathError{Op: "mount a tmpfs", Path: c.At, Err: err}
	}
	for _, path := range c.Sees {
		if err := c.show(path); err != nil {
			return err
		}
	}
	for _, name := range append(slices.Clone(everybodys), c.Devices...) {
		if err := c.device(name); err != nil {
			return err
		}
	}
	return nil
}

// show makes a file or directory of the host visible. A link is one there, too: it leads to what is
// seen or nowhere.
func (c Cell) show(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	at := filepath.Join(c.At, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(to, at)
	case info.IsDir():
		err = os.MkdirAll(at, 0o755)
	default:
		// Made, and not opened: another thread may be starting a program, which has a copy of what is
		// open until it is executed, and the root cannot become read-only while a file in it is open for
		// writing.
		if err = unix.Mknod(at, unix.S_IFREG|0o644, 0); err != nil {
			err = &os.PathError{Op: "mknod", Path: at, Err: err}
		}
	}
	if err != nil {
		return err
	}
	loose, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return &os.PathError{Op: "open_tree", Path: path, Err: err}
	}
	defer unix.Close(loose) //nolint:errcheck // nothing was written to it
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(loose, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return &os.PathError{Op: "mount_setattr", Path: path, Err: err}
	}
	if err := unix.MoveMount(loose, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "move_mount", Path: at, Err: err}
	}
	return nil
}

// everybodys are the devices of /dev that all programs expect.
var everybodys = []string{"null", "urandom"}

// Allow limits what is in a group to some devices of the host's /dev beside those: even a program
// that has left its cell opens no others.
func Allow(in cgroup.Group, names ...string) error {
	var devices []cgroup.Device
	for _, name := range append(slices.Clone(everybodys), names...) {
		d, err := cgroup.DeviceAt(filepath.Join("/dev", name))
		if err != nil {
			return err
		}
		devices = append(devices, d)
	}
	return in.AllowDevices(devices)
}

// device makes a device as the program's own: on the host, it may be root's.
func (c Cell) device(name string) error {
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join("/dev", name), &st); err != nil {
		return &os.PathError{Op: "look at", Path: "/dev/" + name, Err: err}
	}
	at := filepath.Join(c.At, "dev", name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if err := unix.Mknod(at, st.Mode&unix.S_IFMT|0o600, int(st.Rdev)); err != nil {
		return &os.PathError{Op: "mknod", Path: at, Err: err}
	}
	return os.Chown(at, c.User, c.User)
}

// shut lets the thread see the cell and nothing else.
func (c Cell) shut() error {
	if err := unix.Chdir(c.At); err != nil {
		return os.NewSyscallError("chdir", err)
	}
	// The old root comes to lie over the new one (pivot_root(2)), and is taken away.
	if err := unix.PivotRoot(".", "."); err != nil {
		return os.NewSyscallError("pivot_root", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return os.NewSyscallError("umount", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return os.NewSyscallError("chdir", err)
	}
	return os.NewSyscallError("make the root read-only",
		unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID, ""))
}
