package sriov

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/observe/sriov"
	"orrery/internal/problem"
)

// A Request is what a node needs of a function.
type Request struct {
	Function string // sriov.Name
	Holder   string // SITE/ID of the node
	MAC      string
	VLAN     int
	MTU      int
}

// lentPrefix begins the name of an interface while a node has it (spec.NIC.TakenName).
const lentPrefix = "orf"

// noMAC as the address of a function means that its card does not prescribe one.
const noMAC = "00:00:00:00:00:00"

// Lend prepares a function for a node, which then takes its interface. The card enforces the node's
// address and VLAN, and no trust. If Lend fails, it restores what it has changed.
func (b *Bus) Lend(ctx context.Context, r Request) (err error) {
	address, index, ok := sriov.ParseName(r.Function)
	if !ok {
		return problem.New(problem.Unable, "node %s has no virtual function", r.Holder).
			Try("orrery up assigns one")
	}
	d, err := b.open(address)
	if errors.Is(err, fs.ErrNotExist) {
		return problem.New(problem.Unable, "the host has no network card %s with virtual functions", address).
			Try("orrery up assigns another one; lspci -D lists the cards")
	}
	if err != nil {
		return err
	}
	defer d.sys.Close()
	if l, lent := records(b.Loans).loan(r.Function); lent && (l.Holder == r.Holder || l.Taken && b.visible(r.Function)) {
		if err := b.restore(r.Function, l); err != nil { // of a node that has ended on its own
			return err
		}
	}
	c, err := b.readCard(d)
	if err != nil {
		return err
	}
	if use := c.Use(index); use.Holder != "" {
		return problem.New(problem.Unable, "virtual function %s is lent to node %s", r.Function, use.Holder).
			Try("stop that node first")
	} else if use.Other != "" {
		return problem.New(problem.Unable, "virtual function %s is in use: %s", r.Function, use.Other).
			Try("orrery up assigns another one if there is one")
	}
	if err := checkMTU(d, &c, r.MTU); err != nil {
		return err
	}
	if err := b.ensure(&c, index+1); err != nil {
		return err
	}
	name, err := b.awaitInterface(ctx, d.function(index), r.Function)
	if err != nil {
		return err
	}
	return b.set(ctx, d, &c, index, name, r)
}

// checkMTU returns an error if a function cannot have an MTU, because its card has a smaller one.
func checkMTU(d device, c *sriov.Card, mtu int) error {
	name := nameOf(c)
	most := device{d.sys, path.Join(d.dir, "net", name)}.number("mtu")
	if most < 0 || most >= mtu {
		return nil
	}
	return problem.New(problem.Unable, "mtu %d is more than the %d of interface %s, which its virtual functions cannot exceed",
		mtu, most, name).
		Try("set mtu = %d for the network, or a larger one for the interface: ip link set %s mtu %d", most, name, mtu)
}

// pollInterval is the time between two looks for an interface. Udev may not run on the host.
const pollInterval = 20 * time.Millisecond

// awaitInterface waits until the interface of a function exists, and returns its name.
func (b *Bus) awaitInterface(ctx context.Context, f device, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	for {
		if names := f.interfaces(); len(names) > 0 {
			return names[0], nil
		}
		select {
		case <-ctx.Done():
			p := problem.New(problem.Failed, "the interface of virtual function %s does not appear", name)
			if f.link("driver") == "" {
				return "", p.Try("no driver has taken the function: load its module, such as igbvf, ixgbevf, iavf or mlx5_core; " +
					"dmesg shows why one refuses")
			}
			return "", p.Try("its driver is %s; dmesg shows what prevents it", f.link("driver"))
		case <-time.After(pollInterval):
		}
	}
}

// set records the state of a function and sets it for a node.
func (b *Bus) set(ctx context.Context, d device, c *sriov.Card, index int, name string, r Request) (err error) {
	card := nameOf(c)
	before, err := b.Links.Settings(card, index)
	if err != nil {
		return problem.New(problem.Failed, "read the virtual functions of %s", card).Because(err)
	}
	link := device{d.sys, path.Join(d.function(index).dir, "net", name)}
	l := Loan{Holder: r.Holder, Interface: name, MAC: link.read("address"), MTU: link.number("mtu"), Settings: before}
	if err := host.WriteJSON(records(b.Loans).path(r.Function), 0o600, l); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.restore(r.Function, l))
		}
	}()
	for _, s := range []struct {
		what  Setting
		value string
		need  bool // false if a driver without the setting behaves as if it had this value
	}{
		{SpoofCheck, onOff(true), true}, {Trust, onOff(false), false}, {VLAN, strconv.Itoa(r.VLAN), r.VLAN != 0},
		{MAC, r.MAC, true},
	} {
		if s.what == MAC { // once the card prescribes it, some drivers refuse to set it
			_ = b.Links.SetMAC(name, r.MAC) // ignore the error: adopt checks the address
		}
		if err := b.Links.Set(card, index, s.what, s.value); err != nil && (s.need || !isUnsupported(err)) {
			return settingError(c, s.what, s.value, err)
		}
	}
	return b.adopt(ctx, d.function(index), r)
}

// adopt makes the interface of a function have the address that its card prescribes. Some drivers
// learn it only when they take the function.
func (b *Bus) adopt(ctx context.Context, f device, r Request) error {
	address := func() (string, error) {
		name, err := b.awaitInterface(ctx, f, r.Function)
		return device{f.sys, path.Join(f.dir, "net", name)}.read("address"), err
	}
	mac, err := address()
	if err != nil || strings.EqualFold(mac, r.MAC) {
		return err
	}
	if err := rebind(b, f); err != nil {
		return problem.New(problem.Failed, "the driver of virtual function %s cannot be detached and attached again",
			r.Function).Because(err).Try("dmesg may show why")
	}
	if mac, err = address(); err == nil && !strings.EqualFold(mac, r.MAC) {
		return problem.New(problem.Unable, "the interface of virtual function %s has the address %s instead of %s", r.Function,
			mac, r.MAC).Try("use a card whose driver takes the address that the card prescribes")
	}
	return err
}

// rebind detaches a function from its driver and attaches it again.
func rebind(b *Bus, f device) error {
	address, driver := f.address(), filepath.Join(b.Sys, f.dir, "driver")
	to, err := filepath.EvalSymlinks(driver)
	if err != nil {
		return err
	}
	if err := b.Order(filepath.Join(driver, "unbind"), address); err != nil {
		return err
	}
	return b.Order(filepath.Join(to, "bind"), address)
}

// isUnsupported reports whether an error means that a driver lacks a setting.
func isUnsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS)
}

// settingError returns the problem that a card refuses a setting.
func settingError(c *sriov.Card, what Setting, value string, err error) error {
	verb, cure := "refuses", "dmesg may show why"
	if isUnsupported(err) {
		verb, cure = "cannot set", "use a card whose driver can: without it, a node could use addresses of others"
		if what == VLAN {
			cure = "remove vlan from the network, or use a card whose driver can"
		}
	}
	return problem.New(problem.Unable, "driver %s of %s %s %s %s for a virtual function", c.Driver, nameOf(c), verb, what,
		value).Because(err).Try("%s", cure)
}

// MarkTaken records that the interface of a function is being moved into its node. From then on, an
// interface on the host means that the node has ended.
func (b *Bus) MarkTaken(function string) error {
	l, ok := records(b.Loans).loan(function)
	if !ok {
		return fmt.Errorf("virtual function %s is not lent", function)
	}
	l.Taken = true
	return host.WriteJSON(records(b.Loans).path(function), 0o600, l)
}

// Interface returns the name of a function's interface on the host.
func (b *Bus) Interface(function string) (string, error) {
	address, index, ok := sriov.ParseName(function)
	if !ok {
		return "", fmt.Errorf("virtual function %q: %w", function, fs.ErrNotExist)
	}
	d, err := b.open(address)
	if err != nil {
		return "", err
	}
	defer d.sys.Close()
	names := d.function(index).interfaces()
	if len(names) == 0 {
		return "", fmt.Errorf("virtual function %s has no interface on the host", function)
	}
	return names[0], nil
}

func (b *Bus) visible(function string) bool {
	_, err := b.Interface(function)
	return err == nil
}

// Return restores a function that a node had, after the node has ended. It does nothing if the node
// has not borrowed it.
func (b *Bus) Return(ctx context.Context, function, holder string) error {
	l, ok := records(b.Loans).loan(function)
	if !ok || l.Holder != holder {
		return nil
	}
	if l.Taken {
		if err := b.awaitReturn(ctx, function); err != nil {
			return err
		}
	}
	return b.restore(function, l)
}

// awaitReturn waits until the kernel has moved the interface of a function back from a node that was
// killed. A function without a driver has none.
func (b *Bus) awaitReturn(ctx context.Context, function string) error {
	address, index, _ := sriov.ParseName(function)
	d, err := b.open(address)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.sys.Close()
	f := d.function(index)
	if f.link("driver") == "" {
		return nil
	}
	_, err = b.awaitInterface(ctx, f, function)
	return err
}

// restore restores a function and removes its record.
func (b *Bus) restore(function string, l Loan) error {
	if err := b.restoreFunction(function, l); err != nil {
		return problem.New(problem.Failed, "virtual function %s cannot be restored", function).At(records(b.Loans).path(function)).
			Because(err).
			Try("dmesg may show why; orrery tries again when node %s starts or stops", l.Holder)
	}
	err := os.Remove(records(b.Loans).path(function))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (b *Bus) restoreFunction(function string, l Loan) error {
	address, index, _ := sriov.ParseName(function)
	d, err := b.open(address)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the card is gone
	}
	if err != nil {
		return err
	}
	defer d.sys.Close()
	c, err := b.readCard(d)
	if err != nil || index >= c.Current {
		return err // or the function is gone, and its settings with it
	}
	now, err := b.Links.Settings(nameOf(&c), index)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range []struct {
		what    Setting
		value   string
		changed bool
	}{
		{MAC, noMAC, true}, {VLAN, strconv.Itoa(l.VLAN), now.VLAN != l.VLAN}, {Trust, onOff(l.Trust), now.Trust != l.Trust},
		{SpoofCheck, onOff(l.SpoofCheck), now.SpoofCheck != l.SpoofCheck},
	} {
		if !s.changed {
			continue
		}
		err := b.Links.Set(nameOf(&c), index, s.what, s.value)
		// Some drivers refuse this address. They keep the node's until the function gets another one.
		refusesZero := s.what == MAC && (errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EADDRNOTAVAIL))
		if err != nil && !isUnsupported(err) && !refusesZero {
			errs = append(errs, fmt.Errorf("%s %s: %w", s.what, s.value, err))
		}
	}
	return errors.Join(append(errs, b.restoreInterface(d.function(index), l))...)
}

// restoreInterface restores the interface of a function, if it is on the host.
func (b *Bus) restoreInterface(f device, l Loan) error {
	names := f.interfaces()
	if len(names) == 0 || l.Interface == "" {
		return nil
	}
	name := names[0]
	link := device{f.sys, path.Join(f.dir, "net", name)}
	mac, mtu := link.read("address"), link.number("mtu")
	if isUp(link) {
		if err := b.Links.SetUp(name, false); err != nil {
			return err
		}
	}
	var errs []error
	if mac != l.MAC && l.MAC != "" && l.MAC != noMAC {
		errs = append(errs, b.Links.SetMAC(name, l.MAC))
	}
	if mtu != l.MTU && l.MTU > 0 {
		errs = append(errs, b.Links.SetMTU(name, l.MTU))
	}
	return errors.Join(append(errs, restoreName(b.Links, name, l.Interface))...)
}

// kernelName begins the names that the kernel gives, before udev gives better ones. The pattern lets
// the kernel choose a free one.
const kernelName, kernelPattern = "eth", "eth%d"

// restoreName restores the name of an interface that was on the host before. If that was the
// kernel's, udev may have changed it since, and another interface may have it now.
func restoreName(links Links, name, former string) error {
	lent := strings.HasPrefix(name, lentPrefix)
	switch {
	case name == former:
		return nil
	case !strings.HasPrefix(former, kernelName):
		err := links.Rename(name, former)
		if err == nil || !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	if lent {
		return links.Rename(name, kernelPattern)
	}
	return nil
}
