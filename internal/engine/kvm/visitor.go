package kvm

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/crypto/ssh"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/process"
	"orrery/internal/host"
	"orrery/internal/host/login"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// visitor runs commands in a node that boots a disk, by its SSH server.
type visitor struct {
	e   *Engine
	ref engine.Ref
}

var _ host.Runner = visitor{}

// Run runs a command in the node.
func (v visitor) Run(ctx context.Context, c host.Command) error {
	in, err := v.inside(ctx)
	if err != nil {
		return err
	}
	return in.Run(ctx, c)
}

// Put writes files of the node.
func (v visitor) Put(ctx context.Context, files ...host.File) error {
	in, err := v.inside(ctx)
	if err != nil {
		return err
	}
	return in.Put(ctx, files...)
}

// Dial connects from the node.
func (v visitor) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	in, err := v.inside(ctx)
	if err != nil {
		return nil, err
	}
	return in.Dial(ctx, network, address)
}

func (v visitor) inside(ctx context.Context) (*login.Client, error) {
	m := v.e.machine(v.ref)
	if !m.running() {
		return nil, engine.NotRunning(v.ref)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, letting, errors.New("its SSH server does not answer"))
	defer cancel()
	return v.e.logins.of(ctx, v.e, m)
}

// letting is how long the SSH server of a guest that has been started may take to let us in: it may have begun anew.
const letting = 3 * time.Minute

// logins are the connections of this process to SSH servers of guests: one for each, for all that it asks of it.
type logins struct {
	mutex sync.Mutex
	all   map[engine.Ref]*loginSlot
}

// loginSlot is the place of one, held while it is being made.
type loginSlot struct {
	mutex  sync.Mutex
	client *login.Client
}

// of gives the connection to a machine, which may have to boot yet.
func (l *logins) of(ctx context.Context, e *Engine, m machine) (*login.Client, error) {
	s := l.slot(m.ref)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.client != nil {
		if s.client.Ping(ctx) == nil {
			return s.client, nil
		}
		_ = s.client.Close() // the guest has begun anew
		s.client = nil
	}
	door, err := e.door(m)
	if err != nil {
		return nil, err
	}
	s.client, err = knock(ctx, door)
	return s.client, err
}

// knock enters a machine as soon as it lets us in.
func knock(ctx context.Context, door login.Door) (*login.Client, error) {
	for {
		c, err := enter(ctx, door)
		var not *login.NotYet
		var p *problem.Problem
		switch {
		case err == nil:
			return c, nil
		case errors.As(err, &p) && !errors.As(err, &not):
			return nil, err
		}
		if host.Pause(ctx, time.Second) != nil {
			return nil, err
		}
	}
}

// knocking is how long one attempt may take: what came while nobody listened in the guest is lost.
const knocking = 20 * time.Second

func enter(ctx context.Context, door login.Door) (*login.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, knocking)
	defer cancel()
	return door.Enter(ctx)
}

func (l *logins) slot(ref engine.Ref) *loginSlot {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.all == nil {
		l.all = map[engine.Ref]*loginSlot{}
	}
	if l.all[ref] == nil {
		l.all[ref] = &loginSlot{}
	}
	return l.all[ref]
}

// leave ends the connection to a machine.
func (l *logins) leave(ref engine.Ref) {
	s := l.slot(ref)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.client != nil {
		_ = s.client.Close()
		s.client = nil
	}
}

// door says how a machine is entered: through the network namespace of its QEMU, where nobody else is.
func (e *Engine) door(m machine) (login.Door, error) {
	r, err := e.Record(m.ref)
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

// keys gives the keys of a node. They outlive it, so that a disk of former times lets us in, too.
func (e *Engine) keys(r *nodedir.Record) (*keyring, error) {
	dir := filepath.Join(e.Dirs.Keys(r.Site), r.Name)
	mine, _, err := keyAt(filepath.Join(dir, "login_ed25519_key"), "orrery")
	if err != nil {
		return nil, err
	}
	its, private, err := keyAt(filepath.Join(dir, "ssh_host_ed25519_key"), r.Name)
	if err != nil {
		return nil, err
	}
	return &keyring{mine, its.PublicKey(), private}, nil
}

func keyAt(path, comment string) (ssh.Signer, []byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		text, err = login.MakeKey(path, comment)
	}
	if err != nil {
		return nil, nil, err
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, nil, problem.New(problem.Failed, "an SSH key cannot be read").At(path).Because(err).Try("put it back from a backup; or remove it, and make the node anew")
	}
	return key, text, nil
}
