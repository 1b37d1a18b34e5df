package kvm

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/crypto/ssh"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/login"
	"orrery/internal/host/process"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// visit returns the way into a running node that boots a disk: by its SSH server.
func (e *Engine) visit(ctx context.Context, ref engine.Ref) (host.Runner, error) {
	m := e.machine(ref)
	if !m.running() {
		return nil, engine.NotRunning(ref)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, letting, errors.New("its SSH server does not answer"))
	defer cancel()
	c, err := e.login(ctx, m)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// letting is how long the SSH server of a guest that has been started may take to let us in: it may have begun anew.
const letting = 3 * time.Minute

// login returns the connection to a machine, which may have to boot yet.
func (e *Engine) login(ctx context.Context, m machine) (*login.Client, error) {
	return e.logins.To(ctx, m.Ref, func(ctx context.Context) (*login.Client, error) {
		door, err := e.door(m)
		if err != nil {
			return nil, err
		}
		return door.Knock(ctx)
	})
}

// door says how a machine is entered: through the network namespace of its QEMU, where nobody else is.
func (e *Engine) door(m machine) (login.Door, error) {
	r, err := e.Record(m.Ref)
	if err != nil {
		return login.Door{}, err
	}
	if r.Disk.Guest == site.NoGuest {
		return login.Door{}, problem.New(problem.Unable, "node %s: nothing is known of the system on its disk, so no command can be run in it", r.Name).At(r.Site).
			Try(`if it sets itself up by cloud-init, take guest = "none" out of its image`)
	}
	k, err := e.keys(r)
	if err != nil {
		return login.Door{}, err
	}
	dial := func(ctx context.Context) (net.Conn, error) { return m.dial(ctx) }
	return login.Door{Place: r.Name, Dial: dial, User: r.Disk.Login, Key: k.Key, Host: k.Host}, nil
}

// dial connects to the port at which QEMU passes on to the SSH server of the guest.
func (m machine) dial(ctx context.Context) (conn net.Conn, err error) {
	space, err := os.Open(process.Host.File(m.qemu(), "ns/net"))
	if err != nil {
		return nil, err
	}
	defer space.Close()
	err = host.InNetwork(space, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(lo); err != nil {
			return err
		}
		// A dialler of a numeric address works in the thread that calls it.
		conn, err = new(net.Dialer).DialContext(ctx, "tcp4", (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: argv.LinkPort}).String())
		return err
	})
	return conn, err
}

// keyring are the keys by which a guest and the host know one another.
type keyring struct {
	Key     ssh.Signer    // lets the host in
	Host    ssh.PublicKey // by which the guest is known
	private []byte        // half of it
}

// keys returns the keys of a node. They outlive it, so that a disk of former times lets us in, too.
func (e *Engine) keys(r *nodedir.Record) (*keyring, error) {
	dir := filepath.Join(e.Dirs.Keys(r.Site), r.Name)
	mine, _, err := login.KeyAt(filepath.Join(dir, "login_ed25519_key"), "orrery")
	if err != nil {
		return nil, err
	}
	its, private, err := login.KeyAt(filepath.Join(dir, "ssh_host_ed25519_key"), r.Name)
	if err != nil {
		return nil, err
	}
	return &keyring{mine, its.PublicKey(), private}, nil
}
