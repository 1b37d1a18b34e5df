// Package hosts makes one machine several hosts, for tests of sites over many of them.
//
// A host is a set of namespaces (mount, network, pid, uts, ipc, control groups) above the machine's own root file system. It has a disk of its own, which takes all
// that is written there, its own /run and /root, keys, an SSH server at an address of its own, and a link to a switch. LXC, nft, bridges and overlays work in
// it as on any host, so that orrery runs there unchanged.
//
// One process, the keeper, has the switch and the disks in namespaces of its own, and starts the hosts. It ends when whoever asked for them ends, however
// that ends, and with it all of them. What the kernel does not take back by itself (control groups, a directory) the keeper removes; if it was killed, whoever
// comes next does.
package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"orrery/test/need"
)

// Options say what hosts there shall be.
type Options struct {
	Count    int
	Name     string            // of them all; "": one that nobody else has
	Programs map[string]string // what every host has in /usr/local/bin: by name, files of this machine
	Store    string            // a store of layers of this machine: every host has those that are whole, and cannot write to them; "": none
	Disk     int64             // bytes of each host's disk, of which only what is written is taken; 0: 16 GiB
}

// Hosts are hosts that are there. They are numbered from 1.
type Hosts struct {
	name   string
	calls  *rpc.Client
	keeper *exec.Cmd // none, if somebody else's process asked for them
	leash  io.Closer // the keeper ends when it is closed, which the kernel does for whoever is killed
}

var serial atomic.Int64

// Up gives a test its hosts, until it ends.
func Up(t testing.TB, o Options) *Hosts {
	t.Helper()
	need.Integration(t)
	began := time.Now()
	h, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d hosts came up in %s", o.Count, time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// Start brings hosts up, and returns when their SSH servers answer.
func Start(o Options) (*Hosts, error) {
	if o.Name == "" {
		o.Name = fmt.Sprintf("%d-%d", os.Getpid(), serial.Add(1))
	}
	if o.Count < 1 || o.Count > most {
		return nil, fmt.Errorf("%d hosts: 1 to %d can be had", o.Count, most)
	}
	if err := Sweep(); err != nil {
		return nil, err
	}
	if other, err := Attach(o.Name); err == nil {
		return nil, errors.Join(fmt.Errorf("hosts %s are up already", o.Name), other.Close())
	}
	h := &Hosts{name: o.Name, keeper: again(asKeeper)}
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
		h.calls, err = rpc.Dial("unix", socketOf(o.Name))
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Attach gives the hosts that some other process keeps up.
func Attach(name string) (*Hosts, error) {
	calls, err := rpc.Dial("unix", socketOf(name))
	if err != nil {
		return nil, fmt.Errorf("no hosts are up by the name of %s: %w", name, err)
	}
	return &Hosts{name: name, calls: calls}, nil
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
		return errors.Join(fmt.Errorf("keeper of hosts: %w", err), Sweep())
	}
	return h.Gone()
}

// Keeper gives the id of the process with which all of them go.
func (h *Hosts) Keeper() (pid int, err error) {
	err = h.calls.Call("Keeper.Pid", 0, &pid)
	return pid, err
}

// Count says how many there are.
func (h *Hosts) Count() (n int, err error) {
	err = h.calls.Call("Keeper.Count", 0, &n)
	return n, err
}

// The most hosts that there can be: each takes an address and, while it is up, some 30 MiB.
const most = 64

// State is where hosts have what is not in their namespaces: a directory for each set of them.
func State() string { return filepath.Clean(need.State()) + "-hosts" }

func socketOf(name string) string { return filepath.Join(dirOf(name), "socket") }

// NameOf and AddressOf say how a host is called and reached by the others.
func NameOf(host int) string { return "sv" + strconv.Itoa(host) }

// AddressOf gives its address on the switch.
func AddressOf(host int) string { return "10.8.1." + strconv.Itoa(host) }
