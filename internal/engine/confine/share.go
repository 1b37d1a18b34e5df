package confine

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/image/rootfs"
)

// A Share lets a program, such as virtiofsd, work on the root of a node as the node's root, and as
// nobody on the host: in a user namespace of the node's ids, where the root is mounted and its
// owners mapped into those. It shuts itself off from all else, if it is so told, as it may in
// there.
type Share struct {
	*rootfs.Overlay
	Other int // a process that shares the overlay already; 0: nobody does
}

// MaxFiles is how many files a program that shares an overlay may have open. Virtiofsd has one open
// for each file that the guest's kernel remembers, which costs the host up to 4.5 KB, and may not
// ask for more itself.
const MaxFiles = 1 << 17

// Start starts a command that shares the overlay, in a control group.
func (s Share) Start(cmd *exec.Cmd, in cgroup.Group) error {
	attr := attributes(cmd)
	if s.IDs.Size > 0 {
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: s.IDs.First, Size: s.IDs.Size}}
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings, attr.GidMappings, attr.GidMappingsEnableSetgroups = ids, ids, true
		attr.Credential = &syscall.Credential{}
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	if err := bound(cmd, fmt.Sprintf("--nofile=%[1]d:%[1]d", min(own.Max, MaxFiles))); err != nil {
		return err
	}
	return s.within(func() error {
		if err := host.LeaveCaller(); err != nil {
			return err
		}
		return in.Start(cmd)
	})
}

// within does some work where the overlay is mounted.
func (s Share) within(work func() error) error {
	if s.Other == 0 {
		return s.Within(work)
	}
	return s.Overlay.Beside(s.Other, work)
}
