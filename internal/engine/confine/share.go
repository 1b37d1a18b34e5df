package confine

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/cgroup"
	"orrery/internal/image/rootfs"
)

// A Share lets a program, such as virtiofsd, work on the root of a node as the node's root, and as nobody on the host: in a user namespace of the node's ids,
// where the root is mounted and its owners mapped into those. It shuts itself off from all else, if it is so told, as it may in there.
type Share struct{ *rootfs.Overlay }

// Start starts a command that shares the overlay, in a control group.
func (s Share) Start(cmd *exec.Cmd, in cgroup.Group) error {
	attr := attributes(cmd)
	if s.IDs.Size > 0 {
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: s.IDs.First, Size: s.IDs.Size}}
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings, attr.GidMappings, attr.GidMappingsEnableSetgroups = ids, ids, true
		attr.Credential = &syscall.Credential{}
	}
	err := s.Within(func() error {
		if err := shutInherited(); err != nil {
			return err
		}
		return in.Start(cmd)
	})
	if err != nil {
		return err
	}
	return manyFiles(cmd.Process.Pid)
}

// manyFiles lets a process have as many files open as may be: virtiofsd has one for each that the guest knows, and cannot ask for more itself.
func manyFiles(pid int) error {
	const enough = 1_000_000
	err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: enough, Max: enough}, nil)
	if !errors.Is(err, unix.EPERM) {
		return os.NewSyscallError("prlimit", err)
	}
	var has unix.Rlimit // which we may not raise
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &has); err != nil {
		return os.NewSyscallError("prlimit", err)
	}
	has.Cur = min(has.Max, math.MaxInt32)
	return os.NewSyscallError("prlimit", unix.Prlimit(pid, unix.RLIMIT_NOFILE, &has, nil))
}
