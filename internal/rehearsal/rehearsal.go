// Package rehearsal makes one machine act as several hosts: for rehearsals of failures (orrery
// rehearse), and for tests.
//
// A host is a set of namespaces (mount, network, pid, uts, ipc, control groups) above the machine's
// own root file system. It has a disk of its own, which takes all that is written there, its own
// /run and /root, keys, an SSH server at an address of its own, and a link to a switch. LXC, nft,
// bridges and overlays work in it as on any host, so that orrery runs there unchanged.
//
// One process, the keeper, has the switch and the disks in namespaces of its own, and starts the
// hosts. It ends when whoever asked for them ends, however that ends, and with it all of them. What
// the kernel does not take back by itself (control groups, a directory) the keeper removes; if it
// was killed, whoever comes next does.
package rehearsal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
)

// Options say what hosts there shall be.
type Options struct {
	State    string            // a directory for what is not in their namespaces
	Name     string            // of them all; "": one that nobody else has
	Places   []Place           // the hosts
	Programs map[string]string // what every host has in /usr/local/bin: by name, files of this machine
	// a store of layers of this machine: every host has those that are whole, and cannot write to
	// them; "": none
	Store string
	Shown []string // directories of this machine that every host has at the same path, and cannot write to
	Disk  int64    // bytes of each host's disk, of which only what is written is taken; 0: 16 GiB
}

// A Place is a host as the others know it.
type Place struct {
	Name      string         // its host name
	Aliases   []string       // how else it is called
	Addresses []netip.Prefix // on the switch; the first is that of its SSH server
	Port      int            // of that; 0: 22
	User      string         // who else than root comes in, and may do anything by sudo; "": nobody
}

// names returns all by which it is reached.
func (p Place) names() []string {
	all := append([]string{p.Name}, p.Aliases...)
	for _, a := range p.Addresses {
		all = append(all, a.Addr().String())
	}
	return all
}

// Hosts are hosts that are there. They are numbered from 1.
type Hosts struct {
	set    set
	places []Place
	calls  *rpc.Client
	keeper *exec.Cmd // none, if somebody else's process asked for them
	leash  io.Closer // the keeper ends when it is closed, which the kernel does for whoever is killed
}

var serial atomic.Int64

// Start brings hosts up, and returns when their SSH servers answer.
func Start(o Options) (*Hosts, error) {
	if o.Name == "" {
		o.Name = fmt.Sprintf("%d-%d", os.Getpid(), serial.Add(1))
	}
	if len(o.Places) < 1 || len(o.Places) > most {
		return nil, fmt.Errorf("%d hosts: 1 to %d can be had", len(o.Places), most)
	}
	if err := Sweep(o.State); err != nil {
		return nil, err
	}
	of := set{o.State, o.Name}
	if other, err := Attach(of.socket()); err == nil {
		return nil, errors.Join(fmt.Errorf("hosts %s are up already", o.Name), other.Close())
	}
	h := &Hosts{set: of, places: o.Places, keeper: again(asKeeper)}
	h.keeper.Stderr = os.Stderr
	h.keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
	orders, err1 := h.keeper.StdinPipe()
	said, err2 := h.keeper.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := h.keeper.Start(); err != nil {
		return nil, err
	}
	h.leash = orders
	if err := json.NewEncoder(orders).Encode(o); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	text, err := io.ReadAll(said) // it closes it when all is up
	if err == nil && string(text) != up {
		err = fmt.Errorf("hosts: %s", text)
	}
	if err == nil {
		h.calls, err = rpc.Dial("unix", of.socket())
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Attach returns the hosts that some other process keeps up, by the keeper's socket.
func Attach(socket string) (*Hosts, error) {
	calls, err := rpc.Dial("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("no hosts are up at %s: %w", socket, err)
	}
	var about About
	if err := calls.Call("Keeper.About", 0, &about); err != nil {
		return nil, errors.Join(err, calls.Close())
	}
	return &Hosts{set: set{about.State, about.Name}, places: about.Places, calls: calls}, nil
}

// Close takes all of them away, and waits until that is done. Once is enough.
func (h *Hosts) Close() error {
	if h.calls != nil {
		_ = h.calls.Close()
	}
	if h.keeper == nil {
		return nil
	}
	keeper := h.keeper
	h.keeper = nil
	_ = h.leash.Close()
	if err := keeper.Wait(); err != nil {
		return errors.Join(fmt.Errorf("keeper of hosts: %w", err), Sweep(h.set.state))
	}
	return h.Gone()
}

// Keeper returns the id of the process with which all of them go.
func (h *Hosts) Keeper() (pid int, err error) {
	err = h.calls.Call("Keeper.Pid", 0, &pid)
	return pid, err
}

// Places returns the hosts as they know one another.
func (h *Hosts) Places() []Place { return h.places }

// The most hosts that there can be: each takes, while it is up, some 30 MiB.
const most = 64

// seat is how a host is called where its own name may be too long, or that of another: its port at
// the switch, its disk, its control groups.
func seat(number int) string { return "sv" + strconv.Itoa(number) }

// A set of hosts has a directory, by its name.
type set struct{ state, name string }

func (s set) dir() string    { return filepath.Join(s.state, s.name) }
func (s set) lock() string   { return filepath.Join(s.dir(), "lock") }
func (s set) socket() string { return filepath.Join(s.dir(), "socket") }

// Within is where root of a host asks the keeper.
const Within = "/run/orrery-rehearsal"

// Socket is where the keeper of hosts that are called so is asked.
func Socket(state, name string) string { return set{state, name}.socket() }
