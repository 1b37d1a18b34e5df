package agent

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// events are the kernel's notifications about devices (uevents). A port gets its name only after
// its device. Consoles of Xen exist from the beginning.
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

// next waits until a serial port has changed. It also returns if events were lost (ENOBUFS).
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
