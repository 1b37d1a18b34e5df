// Package hosts gives tests several hosts on this machine (package rehearsal): sv1, sv2 and so on,
// at 10.8.1.1 and so on.
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

// Options say what hosts there shall be.
type Options struct {
	Count    int
	Name     string            // of them all; "": one that nobody else has
	Programs map[string]string // what every host has in /usr/local/bin: by name, files of this machine
	// a store of layers of this machine: every host has those that are whole, and cannot write to
	// them; "": none
	Store string
	Disk  int64 // bytes of each host's disk, of which only what is written is taken; 0: 16 GiB
}

// Host is one of them.
type Host = rehearsal.Host

// A Way is one of a link.
type Way = rehearsal.Way

// The ways of a link that can be cut.
const (
	Both = rehearsal.Both
	To   = rehearsal.To
	From = rehearsal.From
)

// Up returns the hosts of a test, which end with it.
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

// Start brings hosts up, and returns when their SSH servers answer.
func Start(o Options) (*rehearsal.Hosts, error) {
	all := rehearsal.Options{State: State(), Name: o.Name, Programs: o.Programs, Store: o.Store, Disk: o.Disk}
	for i := 1; i <= o.Count; i++ {
		all.Places = append(all.Places, rehearsal.Place{Name: NameOf(i),
			Addresses: []netip.Prefix{netip.MustParsePrefix(AddressOf(i) + "/24")}})
	}
	return rehearsal.Start(all)
}

// Attach returns the hosts that some other process keeps up.
func Attach(name string) (*rehearsal.Hosts, error) {
	return rehearsal.Attach(rehearsal.Socket(State(), name))
}

// State is where hosts have what is not in their namespaces: a directory for each set of them.
func State() string { return filepath.Clean(need.State()) + "-hosts" }

// NameOf says how a host is called by the others.
func NameOf(host int) string { return "sv" + strconv.Itoa(host) }

// AddressOf returns its address on the switch.
func AddressOf(host int) string { return "10.8.1." + strconv.Itoa(host) }
