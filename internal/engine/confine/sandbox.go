// Package confine starts programs that a node may take over, such as QEMU, with minimal rights.
// They run with a user id of their own, without capabilities, in namespaces of their own, and with
// a root that contains only what they need. They receive everything else open.
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

// A Sandbox describes what a program sees of this host.
type Sandbox struct {
	At   string // an empty directory, on which its root is mounted in a private mount namespace
	User int    // its user and group id
	// Sees are files and directories of the host that it may read, at the same paths. Missing ones
	// are left out.
	Sees    []string
	Devices []string // devices in the host's /dev that it may use in addition to null and urandom
	Locked  int64    // bytes of memory that it may lock, or 0 for the default limit
}

// QEMUPaths returns what QEMU needs to see besides its program and the files that its machine boots
// from: libraries and firmware, which come from packages and contain no secrets. A QEMU in /opt or
// /usr/local also sees its own libraries and firmware.
func QEMUPaths(program string) []string {
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

// QEMUSandboxOption is the value of QEMU's option -sandbox. It forbids what QEMU does not need if everything
// was opened before.
const QEMUSandboxOption = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

// Start starts a command in the sandbox and in a control group. The caller must be on a thread of its
// own (host.OnLockedThread), because the thread enters the sandbox first. The command has namespaces of its
// own, and no open files but those of cmd.
func (c Sandbox) Start(cmd *exec.Cmd, in cgroup.Group) error {
	name := filepath.Base(cmd.Path)
	var limits []string
	if c.Locked > 0 {
		limits = append(limits, fmt.Sprintf("--memlock=%d", c.Locked))
	}
	if err := wrapWithLimits(cmd, limits...); err != nil {
		return err
	}
	c.Sees = append(slices.Clone(c.Sees), cmd.Path)
	joined, err := in.Join(cmd)
	if err != nil {
		return err
	}
	defer joined()
	if err := c.enter(); err != nil {
		return fmt.Errorf("sandbox for %s: %w", name, err)
	}
	if err := host.DetachFromCaller(); err != nil {
		return err
	}
	if err := seccomp.DenyTapIoctls(); err != nil {
		return err
	}
	attr := attributes(cmd)
	attr.Cloneflags |= unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWPID
	attr.Credential = &syscall.Credential{Uid: uint32(c.User), Gid: uint32(c.User)}
	lowered, err := raiseMemlock(c.Locked)
	if err != nil {
		return err
	}
	defer lowered()
	return cmd.Start()
}

// memlockMutex prevents one raiseMemlock from lowering a limit that another has raised.
var memlockMutex sync.Mutex

// raiseMemlock raises this process's limit of locked memory until lowered is called, because a child
// that is not root cannot have a higher limit.
func raiseMemlock(bytes int64) (lowered func(), err error) {
	if bytes == 0 {
		return func() {}, nil
	}
	memlockMutex.Lock()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &before); err != nil {
		memlockMutex.Unlock()
		return nil, os.NewSyscallError("getrlimit", err)
	}
	if before.Max >= uint64(bytes) {
		memlockMutex.Unlock()
		return func() {}, nil
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: before.Cur, Max: uint64(bytes)}); err != nil {
		memlockMutex.Unlock()
		return nil, os.NewSyscallError("setrlimit", err)
	}
	return func() {
		_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &before)
		memlockMutex.Unlock()
	}, nil
}

// wrapWithLimits wraps a command in prlimit(1), so that it has other limits than this process from its
// start. The memory of a guest, which QEMU and virtiofsd contain, must not be in a core file.
func wrapWithLimits(cmd *exec.Cmd, limits ...string) error {
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		return problem.New(problem.Unable, "prlimit is not installed on this host").Try("install the package util-linux")
	}
	args := append([]string{"prlimit", "--core=0"}, limits...)
	cmd.Path, cmd.Args = prlimit, append(append(args, "--", cmd.Path), cmd.Args[1:]...)
	return nil
}

// attributes returns the attributes of a command that outlives this process and gets an empty
// environment.
func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.Dir, cmd.Env, cmd.SysProcAttr.Setsid = "/", []string{}, true
	return cmd.SysProcAttr
}

// enter moves the calling thread into a mount namespace with the sandbox as its root.
func (c Sandbox) enter() error {
	if err := c.fill(); err != nil {
		return err
	}
	return c.pivotRoot()
}

// fill moves the calling thread into a mount namespace, and creates the sandbox there.
func (c Sandbox) fill() error {
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
		if err := c.bindReadOnly(path); err != nil {
			return err
		}
	}
	for _, name := range append(slices.Clone(commonDevices), c.Devices...) {
		if err := c.makeDevice(name); err != nil {
			return err
		}
	}
	return nil
}

// bindReadOnly makes a file or directory of the host visible in the sandbox. A link stays a link, which leads
// to something visible or nowhere.
func (c Sandbox) bindReadOnly(path string) error {
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
		// Use mknod instead of opening the file. Another thread may be starting a program, which
		// inherits open files until exec, and the root cannot become read-only while a file in it
		// is open for writing.
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

// commonDevices are the devices in /dev that all programs expect.
var commonDevices = []string{"null", "urandom"}

// AllowDevices limits the processes in a group to these devices and some others of the host's /dev, even
// if a program leaves its sandbox.
func AllowDevices(in cgroup.Group, names ...string) error {
	var devices []cgroup.Device
	for _, name := range append(slices.Clone(commonDevices), names...) {
		d, err := cgroup.DeviceAt(filepath.Join("/dev", name))
		if err != nil {
			return err
		}
		devices = append(devices, d)
	}
	return in.AllowDevices(devices)
}

// makeDevice creates a device that belongs to the program's user. On the host, only root may be able to
// open it.
func (c Sandbox) makeDevice(name string) error {
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

// pivotRoot makes the sandbox the root of the calling thread.
func (c Sandbox) pivotRoot() error {
	if err := unix.Chdir(c.At); err != nil {
		return os.NewSyscallError("chdir", err)
	}
	// The old root is then mounted over the new one (pivot_root(2)), and is unmounted.
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
