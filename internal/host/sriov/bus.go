// Package sriov lends virtual functions of network cards (SR-IOV) to nodes.
//
// It finds cards and functions in sysfs, creates functions, and sets what a function may do through
// its card, where the node cannot change it. Before each change it records the former state below
// Bus.Loans, so that a later call can restore it after a kill. Callers must hold the lock of the
// host's networks, except to read.
package sriov

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/observe/sriov"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
)

// A Bus has the network cards of a machine, and the loans of their functions.
type Bus struct {
	Sys     string                        // the mount point of sysfs
	Loans   string                        // directory with a file for each lent function and each changed card
	Order   func(file, text string) error // writes to a file of sysfs
	Links   Links
	Timeout time.Duration // for the interface of a function to appear, or to return from a node
}

// Local is the Bus of this machine. It is the same for all state directories.
var Local = Bus{Sys: "/sys", Loans: "/run/orrery/vf", Order: writeSysfs, Links: kernel{}, Timeout: 30 * time.Second}

func writeSysfs(file, text string) error { return os.WriteFile(file, []byte(text), 0) }

// buses are the directories below sysfs that list devices with virtual functions. Devices of
// netdevsim exist for tests only; their functions have no interfaces.
var buses = []string{"bus/pci/devices", "bus/netdevsim/devices"}

// countFile is the file of sysfs with the number of functions of a card.
const countFile = "sriov_numvfs"

// Limits of what is read from sysfs. A file of sysfs has at most one page.
const (
	maxDevices   = 1 << 16
	maxFileBytes = 1 << 16
)

// A device is a directory of sysfs.
type device struct {
	sys *tree.Root
	dir string // below sysfs
}

func (d device) read(name string) string {
	text, err := d.sys.ReadFile(path.Join(d.dir, name), maxFileBytes)
	if err != nil {
		return ""
	}
	return sanitize.Line(strings.TrimSpace(string(text)))
}

// number returns the number in a file, or -1 if there is none.
func (d device) number(name string) int {
	n, err := strconv.Atoi(d.read(name))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// link returns the last part of a link, or "" if there is none.
func (d device) link(name string) string {
	to, err := d.sys.Readlink(path.Join(d.dir, name))
	if err != nil {
		return ""
	}
	return sanitize.Line(path.Base(to))
}

// interfaces returns the names of the device's network interfaces in this network namespace.
func (d device) interfaces() []string {
	names, err := d.sys.Names(path.Join(d.dir, "net"), maxDevices)
	if err != nil {
		return nil
	}
	return names
}

// function returns the directory of a virtual function.
func (d device) function(index int) device {
	return device{d.sys, path.Join(d.dir, "virtfn"+strconv.Itoa(index))}
}

// address returns the address of a function on its bus.
func (d device) address() string {
	to, err := d.sys.Readlink(d.dir)
	if err != nil {
		return ""
	}
	return path.Base(to)
}

func (d device) hasFunctions() bool { return d.number(countFile) >= 0 }

// total returns how many functions a card can have.
func (d device) total() int {
	if n := d.number("sriov_totalvfs"); n >= 0 {
		return n
	}
	simulated := device{d.sys, path.Join("kernel/debug/netdevsim", path.Base(d.dir))}
	return max(simulated.number("max_vfs"), d.number(countFile), 0)
}

// Cards returns the cards of the machine that can have virtual functions, with the uses of these.
func (b *Bus) Cards() ([]sriov.Card, error) {
	sys, err := tree.Open(b.Sys)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer sys.Close()
	var all []sriov.Card
	for _, bus := range buses {
		names, err := sys.Names(bus, maxDevices)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			d := device{sys, path.Join(bus, name)}
			if _, _, ok := sriov.ParseName(sriov.Name(name, 0)); !ok || !d.hasFunctions() {
				continue
			}
			card, err := b.readCard(d)
			if err != nil {
				return nil, err
			}
			all = append(all, card)
		}
	}
	return all, nil
}

func (b *Bus) readCard(d device) (sriov.Card, error) {
	c := sriov.Card{Address: path.Base(d.dir), Interfaces: d.interfaces(), Driver: d.link("driver"), Total: d.total(),
		Current: max(0, d.number(countFile))}
	for _, name := range c.Interfaces {
		c.Up = c.Up || isUp(device{d.sys, path.Join(d.dir, "net", name)})
	}
	for i := range c.Current {
		use, err := b.use(d, i)
		if err != nil {
			return c, err
		}
		if use != (sriov.Use{Index: i}) {
			c.Used = append(c.Used, use)
		}
	}
	return c, nil
}

// isUp reports whether an interface is up (IFF_UP, netdevice(7)).
func isUp(link device) bool {
	flags, err := strconv.ParseUint(link.read("flags"), 0, 32)
	return err == nil && flags&1 != 0
}

// use returns how a function is used. Without a driver it cannot be used as an interface.
func (b *Bus) use(card device, index int) (sriov.Use, error) {
	use, f := sriov.Use{Index: index}, card.function(index)
	visible := f.interfaces()
	if l, ok := records(b.Loans).loan(sriov.Name(path.Base(card.dir), index)); ok {
		if !l.Taken || len(visible) == 0 { // else the node has ended, and only the record is left
			use.Holder = l.Holder
		}
		return use, nil
	}
	driver := f.link("driver")
	switch {
	case driver == "":
	case len(visible) == 0:
		use.Other = "bound to driver " + driver + ", without an interface on the host"
	default:
		name := visible[0]
		link := device{f.sys, path.Join(f.dir, "net", name)}
		addresses, err := b.Links.Addresses(name)
		if err != nil {
			return use, err
		}
		switch master := link.link("master"); {
		case len(addresses) > 0:
			use.Other = name + " has the host's address " + addresses[0]
		case master != "":
			use.Other = name + " is part of " + master
		case isUp(link):
			use.Other = name + " is up"
		}
	}
	return use, nil
}

// open opens the directory of a card in sysfs. The caller must close it.
func (b *Bus) open(address string) (device, error) {
	sys, err := tree.Open(b.Sys)
	if err != nil {
		return device{}, err
	}
	for _, bus := range buses {
		if d := (device{sys, path.Join(bus, address)}); d.hasFunctions() {
			return d, nil
		}
	}
	sys.Close()
	return device{}, fs.ErrNotExist
}

// order sets the number of functions of a card.
func (b *Bus) order(d device, count int) error {
	return b.Order(filepath.Join(b.Sys, d.dir, countFile), strconv.Itoa(count))
}

// A Loan is the record of a lent function, written before the function is changed.
type Loan struct {
	Holder    string `json:"holder"` // SITE/ID of a node
	Taken     bool   `json:"taken"`  // the interface was moved into the node
	Interface string `json:"interface"`
	MAC       string `json:"mac"` // former address of the interface
	MTU       int    `json:"mtu"`
	Settings  `json:"settings"`
}

// records is the directory with the records of a Bus.
type records string

func (r records) path(name string) string { return filepath.Join(string(r), name) }

func (r records) loan(name string) (Loan, bool) {
	l, err := host.ReadJSON[Loan](r.path(name))
	return l, err == nil && l.Holder != ""
}

// all returns the names of the lent functions.
func (r records) all() []string {
	entries, err := os.ReadDir(string(r))
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		if _, _, ok := sriov.ParseName(e.Name()); ok {
			all = append(all, e.Name())
		}
	}
	slices.Sort(all)
	return all
}
