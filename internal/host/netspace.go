package host

import (
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// NewNetwork makes a network namespace in which there is nothing but a loopback. It is there as long as the file is open or somebody is in it.
func NewNetwork() (*os.File, error) {
	type made struct {
		space *os.File
		err   error
	}
	done := make(chan made, 1)
	OnOwnThread(func() {
		space, err := func() (*os.File, error) {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return nil, os.NewSyscallError("unshare", err)
			}
			lo, err := netlink.LinkByName("lo")
			if err != nil {
				return nil, err
			}
			if err := netlink.LinkSetUp(lo); err != nil {
				return nil, err
			}
			return os.Open("/proc/thread-self/ns/net")
		}()
		done <- made{space, err}
	})
	m := <-done
	return m.space, m.err
}

// InNetwork does something in a network namespace. What is listened at or dialled there stays there.
func InNetwork(space *os.File, what func() error) error {
	done := make(chan error, 1)
	OnOwnThread(func() {
		err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = what()
		}
		done <- err
	})
	return <-done
}
