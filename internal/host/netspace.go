package host

import (
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// NewNetNS creates a network namespace that contains only a loopback interface. The namespace
// exists as long as the file is open or a process is in it.
func NewNetNS() (space *os.File, err error) {
	err = OnLockedThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(lo); err != nil {
			return err
		}
		space, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return space, err
}

// InNetNS calls what on a thread that has entered a network namespace. Sockets that it opens stay
// in that namespace.
func InNetNS(space *os.File, what func() error) error {
	return OnLockedThread(func() error {
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return what()
	})
}
