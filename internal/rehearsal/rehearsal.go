// Package rehearsal makes one machine act as several hosts, for orrery rehearse and for tests.
//
// A host is a set of namespaces (mount, network, pid, uts, ipc, control groups) above the machine's
// own root file system. It has its own disk for all that is written there, its own /run and /root,
// and its own keys. It has an SSH server at its own address, and a link to a switch. LXC, nft,
// bridges and overlays work as on any host, so orrery runs there unchanged.
//
// One process, the supervisor, has the switch and the disks in namespaces of its own, and starts the
// hosts. It ends when the process that started it ends, even if that was killed, and all hosts end
// with it. The supervisor removes what the kernel does not remove itself (control groups, a directory).
// If the supervisor was killed, the next start removes them.
package rehearsal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
)

// Options describe the hosts to start.
type Options struct {
	State    string            // directory for files outside the hosts' namespaces
	Name     string            // name of the set, or "" for a unique one
	Places   []Place           // the hosts
	Programs map[string]string // programs in /usr/local/bin of every host: files of this machine, by name
	// store of layers of this machine, or "" for none: every host sees its complete layers,
	// read-only
	Store string
	Binds []string `json:"Shown"` // directories of this machine that every host sees at the same path, read-only
	Disk  int64    // bytes of each host's disk, allocated only when written, or 0 for 16 GiB
}

// A Place is a host as the other hosts know it.
type Place struct {
	Name      string         // host name
	Aliases   []string       // other names
	Addresses []netip.Prefix // on the switch; the SSH server has the first one
	Port      int            // port of the SSH server, or 0 for 22
	User      string         // user besides root who may run anything by sudo, or "" for none
}

// names returns all names and addresses of the host.
func (p Place) names() []string {
	all := append([]string{p.Name}, p.Aliases...)
	for _, a := range p.Addresses {
		all = append(all, a.Addr().String())
	}
	return all
}

// Hosts are running hosts. Their numbers start at 1.
type Hosts struct {
	set        set
	places     []Place
	calls      *calls
	supervisor *exec.Cmd // or nil, if another process started the hosts
	leash      io.Closer // the supervisor ends when this is closed, which the kernel does if this process is killed
}

var serial atomic.Int64

// Start starts hosts, and returns when their SSH servers answer.
func Start(o Options) (*Hosts, error) {
	if o.Name == "" {
		o.Name = fmt.Sprintf("%d-%d", os.Getpid(), serial.Add(1))
	}
	if len(o.Places) < 1 || len(o.Places) > maxHosts {
		return nil, fmt.Errorf("%d hosts: the number must be 1 to %d", len(o.Places), maxHosts)
	}
	if err := Sweep(o.State); err != nil {
		return nil, err
	}
	of := set{o.State, o.Name}
	if other, err := Attach(of.socket()); err == nil {
		return nil, errors.Join(fmt.Errorf("hosts %s are up already", o.Name), other.Close())
	}
	h := &Hosts{set: of, places: o.Places, supervisor: reexec(roleSupervisor)}
	h.supervisor.Stderr = os.Stderr
	h.supervisor.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
	orders, err1 := h.supervisor.StdinPipe()
	said, err2 := h.supervisor.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := h.supervisor.Start(); err != nil {
		return nil, err
	}
	h.leash = orders
	if err := json.NewEncoder(orders).Encode(o); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	text, err := io.ReadAll(said) // the supervisor closes it when all hosts are up
	if err == nil && string(text) != readyLine {
		err = fmt.Errorf("hosts: %s", text)
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	h.calls = newCalls(of.socket())
	return h, nil
}

// Attach connects to hosts that another process started, by the supervisor's socket.
func Attach(socket string) (*Hosts, error) {
	calls := newCalls(socket)
	var about Description
	if err := calls.call("About", 0, &about); err != nil {
		return nil, fmt.Errorf("no hosts are up at %s: %w", socket, err)
	}
	return &Hosts{set: set{about.State, about.Name}, places: about.Places, calls: calls}, nil
}

// Close ends all hosts, and waits until they are gone. Later calls only close the connection again.
func (h *Hosts) Close() error {
	if h.calls != nil {
		h.calls.close()
	}
	if h.supervisor == nil {
		return nil
	}
	supervisor := h.supervisor
	h.supervisor = nil
	_ = h.leash.Close()
	if err := supervisor.Wait(); err != nil {
		return errors.Join(fmt.Errorf("supervisor of hosts: %w", err), Sweep(h.set.state))
	}
	return h.WaitGone()
}

// SupervisorPID returns the PID of the supervisor. If the supervisor ends, all hosts end.
func (h *Hosts) SupervisorPID() (pid int, err error) {
	err = h.calls.call("Pid", 0, &pid)
	return pid, err
}

// Places returns the hosts' places.
func (h *Hosts) Places() []Place { return h.places }

// maxHosts is the maximum number of hosts. Each running host takes some 30 MiB.
const maxHosts = 64

// portName returns the name of a host's port at the switch, its disk and its control groups. The host
// name may be too long for these, or not unique.
func portName(number int) string { return "sv" + strconv.Itoa(number) }

// A set is a set of hosts. It has a directory under its name.
type set struct{ state, name string }

func (s set) dir() string    { return filepath.Join(s.state, s.name) }
func (s set) lock() string   { return filepath.Join(s.dir(), "lock") }
func (s set) socket() string { return filepath.Join(s.dir(), "socket") }

// SocketInHost is the path of the supervisor's socket on each host.
const SocketInHost = "/run/orrery-rehearsal"

// Socket returns the path of the socket of a supervisor, by the name of its hosts.
func Socket(state, name string) string { return set{state, name}.socket() }
