// Package hosts provides tests with several hosts on this machine (package rehearsal). They are
// sv1, sv2 and so on, at 10.8.1.1 and so on.
package hosts

import (
	"net/netip"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"orrery/internal/rehearsal"
	"orrery/test/need"
)

// Options describes the hosts.
type Options struct {
	Count    int
	Name     string            // of the set of hosts, or "" for a unique one
	Programs map[string]string // programs in /usr/local/bin of every host: name -> file of this machine
	// Store is a layer store of this machine, or "" for none. Every host has its complete layers,
	// read-only.
	Store string
	Disk  int64 // size of each host's disk in bytes, allocated as written, or 0 for 16 GiB
}

// Host is one of the hosts.
type Host = rehearsal.Host

// A Way is a direction of a link.
type Way = rehearsal.Direction

// The directions in which a link can be cut.
const (
	Both = rehearsal.Both
	To   = rehearsal.To
	From = rehearsal.From
)

// Up starts the hosts of a test and stops them when the test ends.
func Up(t testing.TB, o Options) *rehearsal.Hosts {
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

// Start starts hosts, and returns when their SSH servers answer.
func Start(o Options) (*rehearsal.Hosts, error) {
	all := rehearsal.Options{State: State(), Name: o.Name, Programs: o.Programs, Store: o.Store, Disk: o.Disk}
	for i := 1; i <= o.Count; i++ {
		all.Places = append(all.Places, rehearsal.Place{Name: NameOf(i),
			Addresses: []netip.Prefix{netip.MustParsePrefix(AddressOf(i) + "/24")}})
	}
	return rehearsal.Start(all)
}

// Attach returns hosts that another process keeps running.
func Attach(name string) (*rehearsal.Hosts, error) {
	return rehearsal.Attach(rehearsal.Socket(State(), name))
}

// State is the directory for files of hosts outside of their namespaces, with a subdirectory for
// each set of hosts.
func State() string { return filepath.Clean(need.State()) + "-hosts" }

// NameOf returns the name of a host for the other hosts.
func NameOf(host int) string { return "sv" + strconv.Itoa(host) }

// AddressOf returns a host's address on the switch.
func AddressOf(host int) string { return "10.8.1." + strconv.Itoa(host) }
