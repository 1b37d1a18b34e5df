package spead

import (
	"errors"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// open creates a UDP socket of the address's family.
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

// setBuffer requests a receive or send buffer for the given number of data bytes, beyond the limits of
// the host if this process may. It returns the obtained size. The kernel doubles the requested size
// for its own bookkeeping (socket(7)).
func setBuffer(fd, force, plain, bytes int) (int, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes); err != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, bytes); err != nil {
			return 0, err
		}
	}
	got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, plain)
	return got / 2, err
}

// socketDrops returns how often the buffer of a socket was full (SO_MEMINFO, since Linux 4.12).
// Coalesced packets count as one.
func socketDrops(fd int) (uint64, error) {
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

// set makes a message of one range of memory.
func (m *message) set(part *unix.Iovec) {
	m.head.Iov = part
	m.head.SetIovlen(1)
}

// sendAll sends messages with as few calls as possible. It returns how many were sent before the
// first failure.
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

// receiveSome receives the available messages, which may be none. It does not block, so it uses a
// raw system call: otherwise the runtime would release the processor and have to acquire it again.
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

// waitReadable waits until there is a message or the time has passed. It reports whether there may be a
// message.
func waitReadable(fd int, most time.Duration) bool {
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(most.Milliseconds()))
	return n > 0
}

// segment returns the size of the packets that the kernel has coalesced into one message (UDP_GRO,
// udp(7)), or the size of the message.
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
