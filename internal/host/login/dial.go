package login

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// Dial connects from the machine. The address must be numeric, because the two ends may resolve a
// name differently.
func (c *Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "unix" {
		if _, err := netip.ParseAddrPort(address); err != nil {
			return nil, problem.New(problem.Failed, "%s is not a numeric address (names are not resolved)", address).
				At(c.door.Place)
		}
	}
	far, err := c.ssh.DialContext(ctx, network, address)
	if err != nil {
		return nil, problem.New(problem.Failed, "%s could not be reached", address).At(c.door.Place).Because(err)
	}
	near, err := withDeadlines(far)
	if err != nil {
		return nil, errors.Join(err, far.Close())
	}
	return near, nil
}

// A conn is a connection that supports deadlines, which SSH channels do not.
type conn struct {
	*net.UnixConn
	far net.Conn
}

// Close closes both ends of the connection.
func (c *conn) Close() error {
	_ = c.far.Close() // ignore the error: the peer may have closed it already
	return c.UnixConn.Close()
}

func withDeadlines(far net.Conn) (net.Conn, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	near, errNear := connOf(ends[0])
	inner, errInner := connOf(ends[1])
	if err := errors.Join(errNear, errInner); err != nil {
		return nil, err
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(inner, far)
		_ = inner.CloseWrite()
	})
	both.Go(func() {
		_, _ = io.Copy(far, inner)
		if half, ok := far.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
	go func() {
		both.Wait()
		_ = inner.Close()
	}()
	return &conn{near, far}, nil
}

func connOf(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "connection")
	defer f.Close() //nolint:errcheck // the connection has its own
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}
