package agent

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// events is what the kernel tells of devices that come, change and go (its uevents). A port has its
// device before it has its name. Consoles of Xen are there from the beginning.
type events struct{ *os.File }

func listen() (*events, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK,
		unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	return &events{os.NewFile(uintptr(fd), "uevents")}, nil
}

// next waits until something has happened to a serial port. More events than there is room for are
// one, too (ENOBUFS).
func (e *events) next() error {
	b := make([]byte, 16<<10)
	for {
		n, err := e.Read(b)
		if err != nil && !errors.Is(err, unix.ENOBUFS) {
			return err
		}
		if err != nil || bytes.Contains(b[:n], []byte("SUBSYSTEM=virtio-ports")) {
			return nil
		}
	}
}
