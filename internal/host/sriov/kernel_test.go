package sriov

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	card  = "0000:04:00.0"
	other = "0000:04:00.1"
)

// machine imitates the kernel's part of a machine with SR-IOV: sysfs, and netlink.
type machine struct {
	t   *testing.T
	sys string
	// bare means that new functions get no driver, and so no interface.
	bare bool
	// fails has the error of the next orders that begin with a text.
	fails map[string]error
	log   []string
	mac   map[string]string // of functions, as their card prescribes
	set   map[string]string // other settings: "0000:04:00.0v1 vlan"
	ips   map[string][]string
}

func newMachine(t *testing.T) (*Bus, *machine) {
	t.Helper()
	dir := t.TempDir()
	m := &machine{t: t, sys: filepath.Join(dir, "sys"), fails: map[string]error{}, mac: map[string]string{},
		set: map[string]string{}, ips: map[string][]string{}}
	must(t, os.MkdirAll(m.at("bus/pci/devices"), 0o755))
	return &Bus{Sys: m.sys, Loans: filepath.Join(dir, "run"), Order: m.order, Links: m, Timeout: 50 * time.Millisecond}, m
}

func (m *machine) at(parts ...string) string {
	return filepath.Join(append([]string{m.sys}, parts...)...)
}

func (m *machine) write(text string, parts ...string) {
	m.t.Helper()
	file := m.at(parts...)
	must(m.t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(m.t, os.WriteFile(file, []byte(text+"\n"), 0o644))
}

// real returns the directory of a device below sys/devices, as sysfs has it.
func real(address string) string { return "devices/pci0000:00/" + address }

func (m *machine) device(address, driver string) {
	must(m.t, os.MkdirAll(m.at(real(address)), 0o755))
	must(m.t, os.Symlink("../../../"+real(address), m.at("bus/pci/devices", address)))
	if driver != "" {
		must(m.t, os.Symlink("../../../bus/pci/drivers/"+driver, m.at(real(address), "driver")))
	}
}

func (m *machine) link(address, name, flags, mac string) {
	m.write(flags, real(address), "net", name, "flags")
	m.write(mac, real(address), "net", name, "address")
	m.write("1500", real(address), "net", name, "mtu")
}

// add adds a card with an interface that is down.
func (m *machine) add(address, name string, total int) {
	m.t.Helper()
	m.device(address, "igb")
	m.write(strconv.Itoa(total), real(address), "sriov_totalvfs")
	m.write("0", real(address), "sriov_numvfs")
	m.link(address, name, "0x1002", "52:54:00:00:00:01")
}

// function returns the address of a virtual function.
func function(address string, index int) string {
	return strings.Replace(address, ":00.", ":1"+address[len(address)-1:]+".", 1) + strconv.Itoa(index)
}

func (m *machine) order(file, text string) error {
	if name := filepath.Base(file); name == "bind" || name == "unbind" {
		return m.bind(name, text)
	}
	name := strings.TrimPrefix(file, m.sys+"/bus/pci/devices/")
	if err := m.does(strings.Replace(name, "/sriov_", " ", 1) + " " + text); err != nil {
		return &os.PathError{Op: "write", Path: file, Err: err}
	}
	address := filepath.Base(filepath.Dir(file))
	now, count := m.count(address), 0
	count, err := strconv.Atoi(text)
	must(m.t, err)
	if now > 0 && count > 0 {
		return &os.PathError{Op: "write", Path: file, Err: unix.EBUSY} // as sriov_numvfs_store
	}
	for i := range now {
		f := function(address, i)
		must(m.t, os.RemoveAll(m.at(real(f))))
		must(m.t, os.Remove(m.at("bus/pci/devices", f)))
		must(m.t, os.Remove(m.at(real(address), "virtfn"+strconv.Itoa(i))))
	}
	for i := range count {
		f := function(address, i)
		driver := "igbvf"
		if m.bare {
			driver = ""
		}
		m.device(f, driver)
		must(m.t, os.Symlink("../"+f, m.at(real(address), "virtfn"+strconv.Itoa(i))))
		if !m.bare {
			m.link(f, fmt.Sprintf("%sv%d", m.name(address), i), "0x1002", fmt.Sprintf("02:00:00:00:00:%02x", i))
		}
	}
	m.write(text, real(address), "sriov_numvfs")
	return nil
}

// bind attaches a function to its driver, which then reads the address that the card prescribes, or
// detaches it.
func (m *machine) bind(order, address string) error {
	if err := m.does(order + " " + address); err != nil {
		return err
	}
	name := m.name(address)
	if order == "unbind" {
		return os.Rename(m.at(real(address), "net", name), m.at(real(address), "unbound-"+name))
	}
	entries, err := filepath.Glob(m.at(real(address), "unbound-*"))
	must(m.t, err)
	name = strings.TrimPrefix(filepath.Base(entries[0]), "unbound-")
	must(m.t, os.Rename(entries[0], m.at(real(address), "net", name)))
	card, index, _ := strings.Cut(name, "v")
	m.edit(name, "address", m.set[card+" "+index+" mac"])
	return nil
}

// does records an order, and returns the error that a test wants.
func (m *machine) does(order string) error {
	m.log = append(m.log, order)
	for begin, err := range m.fails {
		if strings.HasPrefix(order, begin) {
			return err
		}
	}
	return nil
}

func (m *machine) count(address string) int {
	text, _ := os.ReadFile(m.at(real(address), "sriov_numvfs"))
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}

func (m *machine) name(address string) string {
	entries, err := os.ReadDir(m.at(real(address), "net"))
	if err != nil || len(entries) == 0 {
		return ""
	}
	return entries[0].Name()
}

// find returns the directory of an interface.
func (m *machine) find(name string) string {
	found, err := filepath.Glob(m.at("devices/pci0000:00/*/net", name))
	must(m.t, err)
	if len(found) != 1 {
		m.t.Fatalf("there are %d interfaces %s", len(found), name)
	}
	return found[0]
}

func (m *machine) edit(name, file, text string) {
	must(m.t, os.WriteFile(filepath.Join(m.find(name), file), []byte(text+"\n"), 0o644))
}

func (m *machine) SetUp(name string, up bool) error {
	if err := m.does(name + " up " + onOff(up)); err != nil {
		return err
	}
	m.edit(name, "flags", map[bool]string{true: "0x1003", false: "0x1002"}[up])
	return nil
}

func (m *machine) Rename(name, to string) error {
	if err := m.does(name + " name " + to); err != nil {
		return err
	}
	old := m.find(name)
	if to == kernelPattern {
		to = "eth7"
	}
	return os.Rename(old, filepath.Join(filepath.Dir(old), to))
}

func (m *machine) SetMAC(name, mac string) error {
	if err := m.does(name + " address " + mac); err != nil {
		return err
	}
	m.edit(name, "address", mac)
	return nil
}

func (m *machine) SetMTU(name string, mtu int) error {
	m.edit(name, "mtu", strconv.Itoa(mtu))
	return m.does(name + " mtu " + strconv.Itoa(mtu))
}

func (m *machine) Addresses(name string) ([]string, error) { return m.ips[name], nil }

func (m *machine) Settings(card string, index int) (Settings, error) {
	key := fmt.Sprintf("%s %d ", card, index)
	vlan, _ := strconv.Atoi(m.set[key+"vlan"])
	return Settings{VLAN: vlan, SpoofCheck: m.set[key+"spoofchk"] != "off", Trust: m.set[key+"trust"] == "on"}, nil
}

func (m *machine) Set(card string, index int, what Setting, value string) error {
	key := fmt.Sprintf("%s %d %s", card, index, what)
	if err := m.does(key + " " + value); err != nil {
		return err
	}
	m.set[key] = value
	return nil
}

// borrow moves the interface of a function into a node.
func (m *machine) borrow(b *Bus, name string, f string) {
	m.t.Helper()
	must(m.t, b.MarkTaken(name))
	must(m.t, os.Rename(m.at(real(f), "net"), m.at(real(f), "taken")))
}

// giveBack moves it back, as the kernel does: with the name and the settings that it has in the node.
func (m *machine) giveBack(f string) {
	m.t.Helper()
	must(m.t, os.Rename(m.at(real(f), "taken"), m.at(real(f), "net")))
	old := m.name(f)
	must(m.t, os.Rename(m.at(real(f), "net", old), m.at(real(f), "net", "orf0123456789")))
	m.edit("orf0123456789", "address", "0a:00:00:00:00:01")
	m.edit("orf0123456789", "mtu", "1400")
}

// state returns all that a test's card may have changed.
func (m *machine) state() string {
	var words []string
	for _, a := range []string{card, other} {
		if m.name(a) == "" {
			continue
		}
		flags, _ := os.ReadFile(m.at(real(a), "net", m.name(a), "flags"))
		words = append(words, fmt.Sprintf("%s %s %d", m.name(a), strings.TrimSpace(string(flags)), m.count(a)))
		for i := range m.count(a) {
			f := function(a, i)
			mac, _ := os.ReadFile(m.at(real(f), "net", m.name(f), "address"))
			mtu, _ := os.ReadFile(m.at(real(f), "net", m.name(f), "mtu"))
			words = append(words, m.name(f), strings.TrimSpace(string(mac)), strings.TrimSpace(string(mtu)))
		}
	}
	for key, value := range m.set {
		if value != "0" && value != "off" && value != noMAC && !strings.HasSuffix(key, "spoofchk") {
			words = append(words, key+"="+value)
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

var errNo = errors.New("no")
