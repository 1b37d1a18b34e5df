package spead

import (
	"errors"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// open makes a UDP socket of the family of an address.
func open(address netip.Addr) (int, error) {
	family := unix.AF_INET
	if address.Is6() {
		family = unix.AF_INET6
	}
	return unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
}

func sockaddr(to netip.AddrPort) unix.Sockaddr {
	if to.Addr().Is6() {
		return &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	}
	return &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
}

// buffer asks for a receive or send buffer of so many bytes of data, beyond the limits of the host
// if this process may, and returns what it got (socket(7): the kernel doubles what is asked for, for
// its own books).
func buffer(fd, force, plain, bytes int) (int, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes); err != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, bytes); err != nil {
			return 0, err
		}
	}
	got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, plain)
	return got / 2, err
}

// dropped returns how often the kernel found the buffer of a socket full (SO_MEMINFO, since Linux
// 4.12). Packets that the kernel had put together count as one.
func dropped(fd int) (uint64, error) {
	var info [9]uint32 // SK_MEMINFO_*; the last is SK_MEMINFO_DROPS
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0, errno
	}
	return uint64(info[8]), nil
}

// A message is struct mmsghdr of recvmmsg(2) and sendmmsg(2).
type message struct {
	head unix.Msghdr
	size uint32
	_    [4]byte
}

// set makes a message of one stretch of memory.
func (m *message) set(part *unix.Iovec) {
	m.head.Iov = part
	m.head.SetIovlen(1)
}

// sendAll sends messages, by as few calls as there may be. It returns how many were sent before the
// first that was not.
func sendAll(fd int, messages []message) (sent int, err error) {
	for sent < len(messages) {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&messages[sent])),
			uintptr(len(messages)-sent), 0, 0, 0)
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			return sent, errno
		default:
			sent += int(n)
		}
	}
	return sent, nil
}

// receiveSome takes the messages that are there; none if there are none. It does not wait, so the
// runtime need not be told of the call: it would give the processor away and have to get it back.
func receiveSome(fd int, messages []message) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&messages[0])),
		uintptr(len(messages)), unix.MSG_DONTWAIT, 0, 0)
	switch {
	case errno == 0:
		return int(n), nil
	case errors.Is(errno, unix.EAGAIN), errors.Is(errno, unix.EINTR), errors.Is(errno, unix.ECONNREFUSED):
		return 0, nil
	}
	return 0, errno
}

// await waits until there is a message, or the time is out; it reports whether there may be one.
func await(fd int, most time.Duration) bool {
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(most.Milliseconds()))
	return n > 0
}

// segment returns the size of the packets that the kernel has put together into one message
// (UDP_GRO, udp(7)), or the size of the message.
func (m *message) segment(control []byte) int {
	const head = unix.SizeofCmsghdr
	if n := int(m.head.Controllen); n >= head+4 {
		c := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		if c.Level == unix.SOL_UDP && c.Type == unix.UDP_GRO {
			if size := int(*(*int32)(unsafe.Pointer(&control[head]))); size > 0 {
				return size
			}
		}
	}
	return int(m.size)
}
