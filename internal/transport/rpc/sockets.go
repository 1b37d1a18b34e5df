package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"orrery/internal/host"
	"orrery/internal/host/waits"
	"orrery/internal/problem"
)

// Ports is the maximum number of serial ports a virtual machine has for clients. Each serves one
// client at a time. In the machine they are named PortName + ".0" and so on.
const (
	Ports    = 8
	PortName = "orrery"
)

// SocketName returns the name of a port's socket on the host, in the directory of the machine.
func SocketName(port int) string { return fmt.Sprintf("agent%d.sock", port) }

func lockName(port int) string { return fmt.Sprintf("agent%d.lock", port) }

// answerTimeout is how long to wait for a free port of a machine. again is how long to wait for an
// answer before greeting again, because a machine that reboots loses what was sent.
var ( // variables, so that tests can change them
	answerTimeout = 10 * time.Second
	greetTimeout  = 10 * time.Second
)

// DialAgent takes a port of the machine whose sockets are in dir and opens a client on it. It retries
// until ctx ends, because the machine may not have booted yet.
func DialAgent(ctx context.Context, dir string) (*Client, error) {
	port, held, err := lockPort(ctx, dir)
	if err != nil {
		return nil, err
	}
	for {
		c, err := openPort(ctx, dir, port)
		if err == nil {
			c.release = held.Release
			return c, nil
		}
		if errors.Is(err, errVersion) || errors.Is(err, errNoise) {
			held.Release()
			return nil, err
		}
		if host.Sleep(ctx, 20*time.Millisecond) != nil {
			held.Release()
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, context.Cause(ctx)
			}
			return nil, problem.New(problem.Failed, "the agent does not answer").Because(err).
				Try("orrery console NODE shows whether the guest is running; orrery restart --hard NODE reboots it")
		}
	}
}

// lockPort locks a free port. The port belongs to the caller until the lock is released.
func lockPort(ctx context.Context, dir string) (port int, held *host.Lock, err error) {
	limited, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	taken := 0
	err = waits.For(limited, "a port to the agent of "+filepath.Base(dir), func() (waits.Holder, error) {
		for taken, port = 0, 0; port < Ports; port++ {
			if port > 0 && !socketExists(dir, port) {
				continue // this machine has fewer ports
			}
			if held, err = host.TryLock(filepath.Join(dir, lockName(port)), host.Exclusive); !errors.Is(err, host.ErrHeld) {
				return nil, err
			}
			taken++
		}
		return func() string { return "of the first, " + host.DescribeHolder(filepath.Join(dir, lockName(0))) }, nil
	})
	switch {
	case err == nil:
		return port, held, nil
	case ctx.Err() != nil:
		return 0, nil, context.Cause(ctx)
	case limited.Err() != nil:
		return 0, nil, problem.New(problem.Failed, "all %d ports to its agent are in use", taken).At(dir).
			Try("wait for commands, shells and forwardings in it to end, or end them")
	}
	return 0, nil, err
}

func socketExists(dir string, port int) bool {
	_, err := os.Lstat(filepath.Join(dir, SocketName(port)))
	return err == nil
}

// openPort connects to a socket and greets the agent. It uses a path that is always short enough for a
// socket address.
func openPort(ctx context.Context, dir string, port int) (*Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, greetTimeout, errors.New("its agent sent no greeting"))
	defer cancel()
	at, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", at.Fd(), SocketName(port)))
	if err != nil {
		return nil, err
	}
	return NewClient(ctx, conn)
}
