package network

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"net"
	"net/netip"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"orrery/internal/observe"
)

// The states of sockets that receive what other machines send (include/net/tcp_states.h).
const (
	tcpListen      = 10
	udpUnconnected = 7
)

// listeners returns the sockets of this host's programs that receive what other machines send. It
// asks the kernel for these sockets alone (sock_diag(7)). A kernel without that lists all sockets,
// which takes milliseconds even on an idle host.
func listeners() ([]observe.Listener, error) {
	all := socketList{seen: map[observe.Listener]bool{}}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		for proto, number := range map[string]byte{"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP} {
			if err := all.ask(family, proto, number); err != nil {
				return listenersOfProc()
			}
		}
	}
	return all.found, nil
}

// A socketList is a list of sockets without duplicates and without those on loopback.
type socketList struct {
	found []observe.Listener
	seen  map[observe.Listener]bool
}

func (l *socketList) add(proto string, address netip.Addr, port uint16) {
	one := observe.Listener{Proto: proto, Address: address.Unmap(), Port: port}
	if one.Address.IsLoopback() || l.seen[one] {
		return
	}
	l.seen[one] = true
	l.found = append(l.found, one)
}

// ask adds the sockets of a family and a protocol (struct inet_diag_req_v2 and inet_diag_msg,
// include/uapi/linux/inet_diag.h).
func (l *socketList) ask(family byte, proto string, number byte) error {
	const requestLength, portOffset, addressOffset = 56, 4, 8
	state := uint32(1) << tcpListen
	if proto == "udp" {
		state = 1 << udpUnconnected
	}
	body := make([]byte, requestLength)
	body[0], body[1] = family, number
	binary.NativeEndian.PutUint32(body[4:], state)
	request := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
	request.AddRawData(body)
	answers, err := request.Execute(unix.NETLINK_SOCK_DIAG, nl.SOCK_DIAG_BY_FAMILY)
	if err != nil {
		return err
	}
	length := map[byte]int{unix.AF_INET: 4, unix.AF_INET6: 16}[family]
	for _, a := range answers {
		if len(a) < addressOffset+16 || a[0] != family {
			continue
		}
		address, _ := netip.AddrFromSlice(a[addressOffset : addressOffset+length])
		l.add(proto, address, binary.BigEndian.Uint16(a[portOffset:]))
	}
	return nil
}

// listenersOfProc is like listeners, by proc(5).
func listenersOfProc() ([]observe.Listener, error) {
	proc, err := procfs.NewFS("/proc/thread-self") // so that it is the network namespace of this thread
	if err != nil {
		return nil, err
	}
	all := socketList{seen: map[observe.Listener]bool{}}
	add := func(proto string, ip net.IP, port uint64) {
		if a, ok := netip.AddrFromSlice(ip); ok {
			all.add(proto, a, uint16(port))
		}
	}
	//nolint:staticcheck // deprecated in favour of netlink, which was tried first
	for _, read := range []func() (procfs.NetTCP, error){proc.NetTCP, proc.NetTCP6} {
		lines, err := read()
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
			return nil, err
		}
		for _, l := range lines {
			if l.St == tcpListen {
				add("tcp", l.LocalAddr, l.LocalPort)
			}
		}
	}
	for _, read := range []func() (procfs.NetUDP, error){proc.NetUDP, proc.NetUDP6} {
		lines, err := read()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, l := range lines {
			if l.St == udpUnconnected {
				add("udp", l.LocalAddr, l.LocalPort)
			}
		}
	}
	return all.found, nil
}
