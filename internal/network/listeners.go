package network

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"

	"github.com/prometheus/procfs"

	"orrery/internal/observe"
)

// The states of sockets that receive what other machines send (include/net/tcp_states.h).
const (
	tcpListen      = 10
	udpUnconnected = 7
)

// listeners returns the sockets of this host's programs that receive what other machines send.
func listeners() ([]observe.Listener, error) {
	proc, err := procfs.NewFS("/proc/thread-self") // so that it is the network namespace of this thread
	if err != nil {
		return nil, err
	}
	var all []observe.Listener
	seen := map[observe.Listener]bool{}
	add := func(proto string, ip net.IP, port uint64) {
		a, ok := netip.AddrFromSlice(ip)
		l := observe.Listener{Proto: proto, Address: a.Unmap(), Port: uint16(port)}
		if !ok || l.Address.IsLoopback() || seen[l] {
			return
		}
		seen[l] = true
		all = append(all, l)
	}
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
	return all, nil
}
