package sriov

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/observe/sriov"
	"orrery/internal/problem"
)

var (
	node  = Request{Function: card + "v1", Holder: "karoo/101", MAC: "0a:00:00:00:00:01", VLAN: 100, MTU: 1500}
	first = function(card, 1)
)

// list returns the names of the records of loans and cards.
func (b *Bus) list(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(b.Loans)
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// TestLend: a node's function has its address, its VLAN and no rights. After the node has ended, all
// is as before, and after the network, too.
//
// Promise (Networks): A virtual function has the address and the VLAN of its node, spoof check and
// no trust, or the node does not start. Functions that others use stay as they are, and no failure
// leaves one half set. With host/sriov.TestForeign, host/sriov.TestFails,
// engine/lxc.TestVirtualFunction.
func TestLend(t *testing.T) {
	b, m := newMachine(t)
	m.add(card, "p0", 4)
	must(t, b.Prepare("orb1", []string{"p0"}))
	prepared := m.state()
	if m.count(card) != 4 || !strings.Contains(prepared, "p0 0x1003 4") {
		t.Error(prepared)
	}
	must(t, b.Lend(t.Context(), node))
	for key, want := range map[string]string{"mac": node.MAC, "vlan": "100", "spoofchk": "on", "trust": "off"} {
		if got := m.set["p0 1 "+key]; got != want {
			t.Errorf("%s is %q", key, got)
		}
	}
	m.borrow(b, node.Function, first)
	cards, err := b.Cards()
	must(t, err)
	if use := cards[0].Use(1); use.Holder != node.Holder || use.Other != "" || cards[0].Usable() != 4 {
		t.Errorf("%+v", cards)
	}
	another := node
	another.Holder = "toy/7"
	if err := b.Lend(t.Context(), another); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), "lent to node karoo/101") {
		t.Error(err)
	}
	must(t, b.Return(t.Context(), node.Function, "toy/7")) // not its own
	must(t, b.Release("orb1"))
	if m.count(card) != 4 {
		t.Error("the functions of a running node are removed")
	}
	must(t, b.Prepare("orb1", []string{"p0"}))
	m.giveBack(first)
	must(t, b.Return(t.Context(), node.Function, node.Holder))
	must(t, b.Return(t.Context(), node.Function, node.Holder))
	if got := m.state(); got != prepared || m.set["p0 1 mac"] != noMAC {
		t.Errorf("%s, not %s", got, prepared)
	}
	must(t, b.Release("orb1"))
	if got := b.list(t); got != "" {
		t.Errorf("records %s are left", got)
	}
}

// TestAllBack: without a node that runs in between, the card is as before.
func TestAllBack(t *testing.T) {
	b, m := newMachine(t)
	m.add(card, "p0", 4)
	m.add(other, "p1", 4)
	before := m.state()
	must(t, b.Prepare("orb1", []string{"p0", "p1"}))
	must(t, b.Prepare("orb2", []string{"p1"}))
	must(t, b.Lend(t.Context(), node))
	must(t, b.Lend(t.Context(), node)) // again, as after a kill
	must(t, b.Return(t.Context(), node.Function, node.Holder))
	must(t, b.Release("orb1"))
	if m.count(card) != 0 || m.count(other) != 4 {
		t.Errorf("%d and %d functions", m.count(card), m.count(other))
	}
	must(t, b.Prepare("orb2", []string{"p0"})) // the network changes its interface
	if m.count(card) != 4 || m.count(other) != 0 {
		t.Errorf("%d and %d functions", m.count(card), m.count(other))
	}
	must(t, b.Release("orb2"))
	if got := m.state(); got != before || b.list(t) != "" {
		t.Errorf("%s, not %s; records: %s", got, before, b.list(t))
	}
}

// TestEndedAlone: the function of a node that has ended on its own can be lent to another node.
func TestEndedAlone(t *testing.T) {
	b, m := newMachine(t)
	m.add(card, "p0", 4)
	must(t, b.Prepare("orb1", []string{"p0"}))
	prepared := m.state()
	must(t, b.Lend(t.Context(), node))
	m.borrow(b, node.Function, first)
	m.giveBack(first)
	if cards, err := b.Cards(); err != nil || len(cards[0].Used) > 0 {
		t.Errorf("%+v, %v", cards, err)
	}
	another := node
	another.Holder, another.MAC = "toy/7", "0a:00:00:00:00:02"
	must(t, b.Lend(t.Context(), another))
	must(t, b.Return(t.Context(), node.Function, node.Holder)) // it is no longer its own
	if m.set["p0 1 mac"] != another.MAC {
		t.Error("the function of another node was changed")
	}
	must(t, b.Return(t.Context(), node.Function, another.Holder))
	if got := m.state(); got != prepared {
		t.Errorf("%s, not %s", got, prepared)
	}
}

// TestTakenName: an interface whose former name is taken, or was the kernel's, gets another one.
func TestTakenName(t *testing.T) {
	for name, c := range map[string]struct{ now, former, want string }{
		"back":        {"orf0123456789", "p0v1", "orf0123456789 name p0v1"},
		"killed":      {"eth0", "p0v1", "eth0 name p0v1"},
		"kernel's":    {"orf0123456789", "eth5", "orf0123456789 name eth%d"},
		"udev's":      {"enp4s0v1", "eth5", ""},
		"as it was":   {"p0v1", "p0v1", ""},
		"taken":       {"orf0123456789", "busy0", "orf0123456789 name busy0; orf0123456789 name eth%d"},
		"taken, udev": {"enp4s0v1", "busy0", "enp4s0v1 name busy0"},
	} {
		b, m := newMachine(t)
		m.link(first, c.now, "0x1002", "02:00:00:00:00:01")
		m.fails[c.now+" name busy0"] = unix.EEXIST
		must(t, restoreName(b.Links, c.now, c.former))
		if got := strings.Join(m.log, "; "); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestForeign: functions that are in use by others are left alone, and so is their number.
func TestForeign(t *testing.T) {
	f := function(card, 0)
	for what, use := range map[string]func(m *machine){
		"bound to driver vfio-pci": func(m *machine) {
			must(m.t, os.RemoveAll(m.at(real(f), "net")))
			must(m.t, os.Remove(m.at(real(f), "driver")))
			must(m.t, os.Symlink("../../../bus/pci/drivers/vfio-pci", m.at(real(f), "driver")))
		},
		"without an interface on the host": func(m *machine) { must(m.t, os.RemoveAll(m.at(real(f), "net"))) },
		"address 10.0.0.1/24":              func(m *machine) { m.ips["p0v0"] = []string{"10.0.0.1/24"} },
		"p0v0 is up":                       func(m *machine) { m.edit("p0v0", "flags", "0x1003") },
		"part of br0": func(m *machine) {
			must(m.t, os.Symlink("../../../../br0", m.at(real(f), "net/p0v0/master")))
		},
	} {
		b, m := newMachine(t)
		m.add(card, "p0", 4)
		must(t, m.order(m.at("bus/pci/devices", card, "sriov_numvfs"), "2"))
		use(m)
		before := m.state()
		cards, err := b.Cards()
		must(t, err)
		if len(cards[0].Used) != 1 || !strings.Contains(cards[0].Use(0).Other, what) || cards[0].Usable() != 2 {
			t.Errorf("%s: %+v", what, cards)
		}
		must(t, b.Prepare("orb1", []string{"p0"}))
		r := node
		r.Function = card + "v0"
		if err := b.Lend(t.Context(), r); problem.ExitCode(err) != int(problem.Unable) ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
		r.Function = card + "v3"
		if err := b.Lend(t.Context(), r); problem.ExitCode(err) != int(problem.Unable) ||
			!strings.Contains(err.Error(), "cannot create more while one is in use") {
			t.Errorf("%s: %v", what, err)
		}
		r.Function = card + "v1"
		must(t, b.Lend(t.Context(), r))
		must(t, b.Return(t.Context(), r.Function, r.Holder))
		must(t, b.Release("orb1"))
		if after := strings.Replace(m.state(), "0x1003 2", "0x1002 2", 1); after != before || m.count(card) != 2 {
			t.Errorf("%s: %s, not %s", what, after, before)
		}
	}
}

// TestMore: the number of functions is raised if none is in use, and restored.
func TestMore(t *testing.T) {
	b, m := newMachine(t)
	m.add(card, "p0", 4)
	must(t, m.order(m.at("bus/pci/devices", card, "sriov_numvfs"), "1"))
	must(t, b.Prepare("orb1", []string{"p0"}))
	if m.count(card) != 1 {
		t.Error("the user's number is changed without need")
	}
	must(t, b.Lend(t.Context(), node))
	if m.count(card) != 4 {
		t.Errorf("%d functions", m.count(card))
	}
	must(t, b.Return(t.Context(), node.Function, node.Holder))
	must(t, b.Release("orb1"))
	if m.count(card) != 1 {
		t.Errorf("%d functions", m.count(card))
	}
}

// TestFails: whichever order the kernel refuses, nothing stays half set.
func TestFails(t *testing.T) {
	for order, c := range map[string]struct {
		err  error
		want string
	}{
		"p0 1 mac 0a":      {unix.EOPNOTSUPP, "driver igb of p0 cannot set mac 0a:00:00:00:00:01"},
		"p0 1 vlan 100":    {unix.EOPNOTSUPP, "remove vlan from the network"},
		"p0 1 spoofchk on": {unix.EOPNOTSUPP, "a node could use addresses of others"},
		"p0 1 trust off":   {unix.EPERM, "refuses trust off"},
	} {
		b, m := newMachine(t)
		m.add(card, "p0", 4)
		must(t, b.Prepare("orb1", []string{"p0"}))
		before := m.state()
		m.fails[order] = c.err
		err := b.Lend(t.Context(), node)
		if problem.ExitCode(err) != int(problem.Unable) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", order, err)
		}
		clear(m.fails)
		if got := m.state(); got != before || b.list(t) != "card-"+card {
			t.Errorf("%s: %s, not %s; records: %s", order, got, before, b.list(t))
		}
	}
	b, m := newMachine(t)
	m.add(card, "p0", 4)
	must(t, b.Prepare("orb1", []string{"p0"}))
	m.fails["p0 1 trust off"] = unix.EOPNOTSUPP // a driver that never trusts a function
	must(t, b.Lend(t.Context(), node))
}

// TestAdopt: a driver that cannot set the address, or refuses it, takes the function again, and then
// has the address that the card prescribes. If it does not, the node does not start.
func TestAdopt(t *testing.T) {
	b, m := newMachine(t)
	m.add(card, "p0", 4)
	must(t, os.MkdirAll(m.at("bus/pci/drivers/igbvf"), 0o755))
	must(t, b.Prepare("orb1", []string{"p0"}))
	before := m.state()
	m.fails["p0v1 address 0a"] = unix.EADDRNOTAVAIL
	must(t, b.Lend(t.Context(), node))
	if got := strings.Join(m.log, "; "); !strings.Contains(got, "unbind "+first+"; bind "+first) ||
		!strings.Contains(m.state(), node.MAC) {
		t.Errorf("%s after %s", m.state(), got)
	}
	must(t, b.Return(t.Context(), node.Function, node.Holder))
	if got := m.state(); got != before {
		t.Errorf("%s, not %s", got, before)
	}
	m.fails["unbind"] = unix.EBUSY
	if err := b.Lend(t.Context(), node); problem.ExitCode(err) != int(problem.Failed) ||
		!strings.Contains(err.Error(), "attached again") {
		t.Error(err)
	}
	clear(m.fails)
	if got := m.state(); got != before || b.list(t) != "card-"+card {
		t.Errorf("%s, not %s; records: %s", got, before, b.list(t))
	}
}

// TestRefusedCount: a card whose functions cannot be created is as before, as are the other cards of
// the network.
func TestRefusedCount(t *testing.T) {
	b, m := newMachine(t)
	m.add(card, "p0", 4)
	m.add(other, "p1", 4)
	before := m.state()
	m.fails[other+" numvfs 4"] = unix.ENOMEM
	err := b.Prepare("orb1", []string{"p0", "p1"})
	if problem.ExitCode(err) != int(problem.Failed) || !strings.Contains(err.Error(), "pci=realloc") {
		t.Error(err)
	}
	if got := m.state(); got != before || b.list(t) != "" {
		t.Errorf("%s, not %s; records: %s", got, before, b.list(t))
	}
	m.fails["p1 up"] = errNo
	if err := b.Prepare("orb1", []string{"p1"}); problem.ExitCode(err) != int(problem.Failed) {
		t.Error(err)
	}
	if got := m.state(); got != before || b.list(t) != "" {
		t.Errorf("%s, not %s; records: %s", got, before, b.list(t))
	}
	clear(m.fails)
	must(t, m.order(m.at("bus/pci/devices", card, "sriov_numvfs"), "1"))
	before = m.state()
	m.fails[card+" numvfs 4"] = unix.ENOMEM
	if err := b.Lend(t.Context(), node); problem.ExitCode(err) != int(problem.Failed) {
		t.Error(err)
	}
	if got := m.state(); got != before {
		t.Errorf("%s, not %s", got, before)
	}
}

// TestNoInterface: a function that no driver takes is an error with the cure, after a bounded time.
func TestNoInterface(t *testing.T) {
	b, m := newMachine(t)
	m.add(card, "p0", 4)
	m.bare = true
	must(t, b.Prepare("orb1", []string{"p0"}))
	before := m.state()
	err := b.Lend(t.Context(), node)
	if problem.ExitCode(err) != int(problem.Failed) || !strings.Contains(err.Error(), "load its module") {
		t.Error(err)
	}
	if got := m.state(); got != before || b.list(t) != "card-"+card {
		t.Errorf("%s, not %s; records: %s", got, before, b.list(t))
	}
}

// TestBad: what does not exist, or has other limits, is refused.
func TestBad(t *testing.T) {
	b, m := newMachine(t)
	if cards, err := b.Cards(); len(cards) > 0 || err != nil {
		t.Errorf("%v, %v", cards, err)
	}
	m.add(card, "p0", 0)
	m.device(other, "e1000e") // without SR-IOV
	for name, want := range map[string]string{"p0": "has only 0 virtual functions", "p9": "no interface of p9"} {
		if err := b.Prepare("orb1", []string{name}); problem.ExitCode(err) != int(problem.Unable) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{"": "has no virtual function", "../../etc/passwd": "has no virtual function",
		other + "v0": "no network card", card + "v0": "has only 0"} {
		r := node
		r.Function = name
		if err := b.Lend(t.Context(), r); problem.ExitCode(err) != int(problem.Unable) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	big := node
	big.MTU = 9000
	if err := b.Lend(t.Context(), big); !strings.Contains(err.Error(), "ip link set p0 mtu 9000") {
		t.Error(err)
	}
	m.write(strings.Repeat("9", 1<<17), real(card), "sriov_totalvfs")
	if cards, err := b.Cards(); err != nil || cards[0].Total != 0 {
		t.Errorf("%+v, %v", cards, err)
	}
	if got := b.list(t); got != "" {
		t.Errorf("records %s are left", got)
	}
}

// TestOutside: a link that leads out of sysfs is not followed.
func TestOutside(t *testing.T) {
	b, m := newMachine(t)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "sriov_numvfs"), []byte("3\n"), 0o644))
	must(t, os.Symlink(dir, m.at("bus/pci/devices", card)))
	if cards, err := b.Cards(); len(cards) > 0 || err != nil {
		t.Errorf("%v, %v", cards, err)
	}
}

// TestReload: a driver that is loaded again has removed all functions, and the records with them.
func TestReload(t *testing.T) {
	b, m := newMachine(t)
	m.add(card, "p0", 4)
	must(t, b.Prepare("orb1", []string{"p0"}))
	must(t, b.Lend(t.Context(), node))
	m.borrow(b, node.Function, first)
	must(t, m.order(m.at("bus/pci/devices", card, "sriov_numvfs"), "0"))
	must(t, b.Prepare("orb1", []string{"p0"}))
	if m.count(card) != 4 {
		t.Errorf("%d functions", m.count(card))
	}
	must(t, b.Return(t.Context(), node.Function, node.Holder))
	must(t, b.Lend(t.Context(), node))
	if m.set["p0 1 mac"] != node.MAC {
		t.Error("the address is not set again")
	}
	must(t, b.Return(t.Context(), node.Function, node.Holder))
}

// TestSimulated: the devices of netdevsim have functions without interfaces.
func TestSimulated(t *testing.T) {
	b, m := newMachine(t)
	m.write("0", "devices/netdevsim1/sriov_numvfs")
	m.write("0x1002", "devices/netdevsim1/net/eni1np1/flags")
	m.write("8", "kernel/debug/netdevsim/netdevsim1/max_vfs")
	must(t, os.MkdirAll(m.at("bus/netdevsim/devices"), 0o755))
	must(t, os.Symlink("../../../devices/netdevsim1", m.at("bus/netdevsim/devices/netdevsim1")))
	cards, err := b.Cards()
	must(t, err)
	if len(cards) != 1 || cards[0].Address != "netdevsim1" || cards[0].Total != 8 ||
		sriov.Name(cards[0].Address, 2) != "netdevsim1v2" {
		t.Errorf("%+v", cards)
	}
}
