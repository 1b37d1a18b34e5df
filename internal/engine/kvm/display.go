package kvm

import (
	"context"
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/kvm/qmp"
)

// openDisplay returns a connection on which QEMU shows the screen (-vnc). QEMU does not listen for
// viewers: it receives one end of the connection. So it needs no password, because only the caller has
// the other end.
func openDisplay(ctx context.Context, q *qmp.Client) (net.Conn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "screen"), os.NewFile(uintptr(fds[1]), "screen")
	defer ours.Close()   //nolint:errcheck // the connection is another
	defer theirs.Close() //nolint:errcheck // QEMU has another
	if err := q.PassFile(ctx, "screen", theirs); err != nil {
		return nil, err
	}
	if err := q.Do(ctx, "add_client", map[string]any{"protocol": "vnc", "fdname": "screen", "skipauth": true},
		nil); err != nil {
		after, cancel := cleanupContext(ctx)
		defer cancel()
		return nil, errors.Join(err, q.Do(after, "closefd", map[string]string{"fdname": "screen"}, nil))
	}
	return net.FileConn(ours)
}
