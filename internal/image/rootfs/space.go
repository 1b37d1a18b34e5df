package rootfs

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// InMountNamespace runs work on a thread in the mount namespace of a process. The thread's root is the
// namespace's original root. Table returns the mounts that the thread sees.
func InMountNamespace(pid int, work func(table func() ([]MountInfo, error)) error) error {
	return host.OnLockedThread(func() error {
		proc, err := os.Open("/proc") // the host's /proc: the node's does not have this thread
		if err != nil {
			return err
		}
		defer proc.Close()
		space, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		if err != nil {
			return err
		}
		defer space.Close()
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNS); err != nil {
			return os.NewSyscallError("setns", err)
		}
		return work(func() ([]MountInfo, error) { return mountTable(proc) })
	})
}

func mountTable(proc *os.File) ([]MountInfo, error) {
	fd, err := unix.Openat(int(proc.Fd()), "thread-self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open mountinfo", err)
	}
	file := os.NewFile(uintptr(fd), "mountinfo")
	defer file.Close()
	return ReadMounts(file)
}
