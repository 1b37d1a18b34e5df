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

// A Share runs a program, such as virtiofsd, on the root of a node. The program is root of the
// node's ids, in a user namespace, and has no rights on the host. The root is mounted there with
// its owners mapped to the node's ids. In the user namespace, the program itself can enter a
// sandbox if its options say so.
type Share struct {
	*rootfs.Overlay
	Other int // process id of a program that shares the overlay already, or 0 if there is none
}

// MaxFiles is the number of files that a program which shares an overlay may have open. Virtiofsd
// has a file open for each file that the guest's kernel remembers, which costs the host up to 4.5
// KB. The program cannot raise the limit itself.
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
	if err := wrapWithLimits(cmd, fmt.Sprintf("--nofile=%[1]d:%[1]d", min(own.Max, MaxFiles))); err != nil {
		return err
	}
	return s.within(func() error {
		if err := host.DetachFromCaller(); err != nil {
			return err
		}
		return in.Start(cmd)
	})
}

// within calls work in a mount namespace in which the overlay is mounted.
func (s Share) within(work func() error) error {
	if s.Other == 0 {
		return s.WithMounted(work)
	}
	return s.Overlay.WithProcessRoot(s.Other, work)
}
