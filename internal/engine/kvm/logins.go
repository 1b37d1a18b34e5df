package kvm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/crypto/ssh"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/host/login"
	"orrery/internal/host/process"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// logins are the connections to guests by their SSH servers.
type logins struct {
	nodes *nodedir.Nodes
	to    vm.Connections[*login.Client]
}

// connect returns the SSH connection to a running node that boots a foreign disk.
func (l *logins) connect(ctx context.Context, m machine) (host.Runner, error) {
	if !m.running() {
		return nil, engine.NotRunning(m.Ref)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, loginTimeout, errors.New("its SSH server does not answer"))
	defer cancel()
	c, err := l.login(ctx, m)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// loginTimeout limits how long the SSH server of a running guest may take to accept a login. The guest
// may be rebooting.
const loginTimeout = 3 * time.Minute

// login returns the connection to a machine, which may still be booting.
func (l *logins) login(ctx context.Context, m machine) (*login.Client, error) {
	return l.to.Get(ctx, m.Ref, func(ctx context.Context) (*login.Client, error) {
		door, err := l.door(m)
		if err != nil {
			return nil, err
		}
		return door.ConnectWhenReady(ctx)
	})
}

// door returns how to log in to a machine: through the network namespace of its QEMU, which no
// other process is in.
func (l *logins) door(m machine) (login.Server, error) {
	r, err := l.nodes.Record(m.Ref)
	if err != nil {
		return login.Server{}, err
	}
	if r.Disk.Guest == site.NoGuest {
		return login.Server{}, problem.New(problem.Unable,
			"node %s: the system on its disk is unknown, and commands cannot run in it", r.Name).At(r.Site).
			Try(`if it uses cloud-init, remove guest = "none" from its image`)
	}
	k, err := keysOf(l.nodes.Dirs, r)
	if err != nil {
		return login.Server{}, err
	}
	dial := func(ctx context.Context) (net.Conn, error) { return dialForwardedPort(ctx, m.qemu()) }
	return login.Server{Place: r.Name, Dial: dial, User: r.Disk.Login, Key: k.Key, Host: k.Host}, nil
}

// dialForwardedPort connects to the port that a QEMU forwards to the SSH server of its guest.
func dialForwardedPort(ctx context.Context, qemu int) (conn net.Conn, err error) {
	space, err := os.Open(process.Host.File(qemu, "ns/net"))
	if err != nil {
		return nil, err
	}
	defer space.Close()
	err = host.InNetNS(space, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(lo); err != nil {
			return err
		}
		// The dialler uses the calling thread, because the address is numeric.
		conn, err = new(net.Dialer).
			DialContext(ctx, "tcp4", (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: argv.LinkPort}).String())
		return err
	})
	return conn, err
}

// firstBootTimeout limits how long a guest that sets itself up may take until its SSH server accepts a
// login. In emulation it may take engine.EmulationFactor times as long.
const firstBootTimeout = 5 * time.Minute

// await waits until the guest accepts a login.
func (l *logins) await(ctx context.Context, m machine, accel string) error {
	timeout := firstBootTimeout
	if accel != observe.KVM {
		timeout *= engine.EmulationFactor
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	waiting, fail := context.WithCancelCause(waiting)
	defer fail(nil)
	go func() {
		if m.awaitOff(waiting) == nil {
			fail(errors.New("it was switched off before its SSH server answered"))
		}
	}()
	_, err := l.login(waiting, m)
	switch {
	case err == nil:
		return nil
	case errors.Is(waiting.Err(), context.DeadlineExceeded):
		return fmt.Errorf("login to its SSH server failed for %v: %w", timeout, err)
	case waiting.Err() != nil:
		return context.Cause(waiting)
	}
	return err
}

// keyring holds the keys by which a guest and the host authenticate each other.
type keyring struct {
	Key     ssh.Signer    // the host's key, for logging in
	Host    ssh.PublicKey // the guest's host key
	private []byte        // the private half of Host
}

// keysOf returns the keys of a node. They outlive the node, so that the guest on an older disk
// accepts them, too.
func keysOf(dirs host.Dirs, r *nodedir.Record) (*keyring, error) {
	dir := filepath.Join(dirs.Keys(r.Site), r.Name)
	mine, _, err := login.LoadOrCreateKey(filepath.Join(dir, "login_ed25519_key"), "orrery")
	if err != nil {
		return nil, err
	}
	its, private, err := login.LoadOrCreateKey(filepath.Join(dir, "ssh_host_ed25519_key"), r.Name)
	if err != nil {
		return nil, err
	}
	return &keyring{mine, its.PublicKey(), private}, nil
}
