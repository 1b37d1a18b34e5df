package lxc

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// Dial connects from inside the node's network. The address must be numeric, because a name would
// be looked up on the host.
func (r runner) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, problem.New(problem.Failed, "%s is not an address, and names are not looked up", address).At(r.p.ref.Name)
	}
	err = host.OnLockedThread(func() (err error) {
		conn, err = r.p.dial(ctx, network, address)
		return err
	})
	return conn, err
}

// dial connects on the calling thread, which stays in the node's network namespace.
func (p processes) dial(ctx context.Context, network, address string) (net.Conn, error) {
	space, err := p.openNetNamespace()
	if err != nil {
		return nil, err
	}
	defer space.Close()
	if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, os.NewSyscallError("setns", err)
	}
	thread := unix.Gettid()
	dialer := net.Dialer{Control: func(string, string, syscall.RawConn) error {
		if unix.Gettid() != thread { // the socket would be in the host's network namespace
			return problem.New(problem.Failed, "the node did not start the connection to %s", address)
		}
		return nil
	}}
	return dialer.DialContext(ctx, network, address)
}

// openNetNamespace opens the network namespace of the node. It returns NotRunning if that is the host's
// namespace, in which the node's first process is for a moment while the node starts.
func (p processes) openNetNamespace() (*os.File, error) {
	pid := p.init()
	if pid == 0 {
		return nil, engine.NotRunning(p.ref)
	}
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, engine.NotRunning(p.ref)
	}
	var its, ours unix.Stat_t
	err = unix.Fstat(int(space.Fd()), &its)
	if err == nil {
		err = unix.Stat("/proc/self/ns/net", &ours)
	}
	if err == nil && its.Dev == ours.Dev && its.Ino == ours.Ino || p.init() != pid {
		err = engine.NotRunning(p.ref)
	}
	if err != nil {
		space.Close()
		return nil, err
	}
	return space, nil
}
