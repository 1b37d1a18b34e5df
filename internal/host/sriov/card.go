package sriov

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/host"
	"orrery/internal/observe/sriov"
	"orrery/internal/problem"
)

// A savedCard is the record of a card that Orrery has changed for networks.
type savedCard struct {
	Networks []string `json:"networks"`       // names of their links
	Count    int      `json:"count"`          // former number of functions
	Down     string   `json:"down,omitempty"` // its interface if that was down
}

const cardPrefix = "card-"

// Prepare sets the cards of a network's interfaces up and creates their functions. An interface
// that the host does not have is ignored if it has another one. If Prepare fails, it undoes what it
// has changed.
func (b *Bus) Prepare(network string, interfaces []string) (err error) {
	cards, err := b.Cards()
	if err != nil {
		return err
	}
	of := sriov.Of(cards, interfaces)
	if len(of) == 0 {
		return problem.New(problem.Unable, "no interface of %s has virtual functions", strings.Join(interfaces, ", ")).
			Try("orrery doctor shows which cards have them")
	}
	var added []string
	defer func() {
		if err != nil {
			for _, address := range added {
				err = errors.Join(err, b.release(address, network))
			}
		}
	}()
	for _, c := range of {
		saved, known := records(b.Loans).card(c.Address)
		if !known {
			saved.Count = c.Current
			if !c.Up {
				saved.Down = interfaceOf(c, interfaces)
			}
		}
		if !slices.Contains(saved.Networks, network) {
			saved.Networks = append(saved.Networks, network)
			if err := host.WriteJSON(records(b.Loans).path(cardPrefix+c.Address), 0o600, saved); err != nil {
				return err
			}
			added = append(added, c.Address)
		}
		if err := b.prepareCard(c, interfaces); err != nil {
			return err
		}
	}
	return b.releaseOthers(network, of)
}

// prepareCard sets a card up, since functions of a card that is down have no link, and creates its
// functions if it has none.
func (b *Bus) prepareCard(c *sriov.Card, interfaces []string) error {
	if !c.Up {
		name := interfaceOf(c, interfaces)
		if err := b.Links.SetUp(name, true); err != nil {
			return problem.New(problem.Failed, "interface %s cannot be set up", name).Because(err)
		}
	}
	return b.ensure(c, 1)
}

func interfaceOf(c *sriov.Card, interfaces []string) string {
	for _, name := range interfaces {
		if slices.Contains(c.Interfaces, name) {
			return name
		}
	}
	return ""
}

// nameOf returns a name of a card for messages.
func nameOf(c *sriov.Card) string {
	if len(c.Interfaces) > 0 {
		return c.Interfaces[0]
	}
	return c.Address
}

// ensure makes a card have at least some functions. If it has fewer, it gets as many as it can have.
// The kernel removes all functions before it changes their number, so none may be in use.
func (b *Bus) ensure(c *sriov.Card, least int) error {
	switch {
	case c.Current >= least:
		return nil
	case c.Total < least:
		return problem.New(problem.Unable, "interface %s has only %d virtual functions; %d are needed", nameOf(c), c.Total,
			least).
			Try("turn SR-IOV on, or more functions, in the firmware of the host and of the card")
	case len(c.Used) > 0:
		u := c.Used[0]
		return problem.New(problem.Unable,
			"interface %s has %d virtual functions; the kernel cannot create more while one is in use: %s (%s)", nameOf(c),
			c.Current, sriov.Name(c.Address, u.Index), cmp.Or(u.Other, "node "+u.Holder)).
			Try("stop what uses them, then run orrery up; it can have %d", c.Total)
	}
	if err := b.setCount(c, c.Total); err != nil {
		return err
	}
	c.Current = c.Total
	return nil
}

// setCount sets the number of functions of a card. None is in use.
func (b *Bus) setCount(c *sriov.Card, count int) error {
	d, err := b.open(c.Address)
	if err != nil {
		return err
	}
	defer d.sys.Close()
	if c.Current > 0 && count > 0 {
		if err := b.order(d, 0); err != nil {
			return countError(c, 0, err)
		}
	}
	err = b.order(d, count)
	if err == nil && d.number(countFile) != count {
		err = errors.New("it has " + strconv.Itoa(d.number(countFile)))
	}
	if err == nil {
		return nil
	}
	if now := d.number(countFile); now != c.Current && now >= 0 {
		if now > 0 {
			err = errors.Join(err, b.order(d, 0))
		}
		if c.Current > 0 {
			err = errors.Join(err, b.order(d, c.Current))
		}
	}
	return countError(c, count, err)
}

func countError(c *sriov.Card, count int, err error) error {
	return problem.New(problem.Failed, "driver %s of %s does not create %d virtual functions", c.Driver, nameOf(c), count).
		Because(err).
		Try("dmesg shows why; if the firmware has reserved too little address space for them, boot with pci=realloc, " +
			"and with intel_iommu=on iommu=pt for virtual machines")
}

func (r records) card(address string) (savedCard, bool) {
	saved, err := host.ReadJSON[savedCard](r.path(cardPrefix + address))
	return saved, err == nil
}

// Release restores the cards that a network has used. A card with functions in use keeps all of its
// functions.
func (b *Bus) Release(network string) error { return b.releaseOthers(network, nil) }

// releaseOthers restores the cards that a network has used, except some.
func (b *Bus) releaseOthers(network string, except []*sriov.Card) error {
	entries, err := os.ReadDir(b.Loans)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		address, ok := strings.CutPrefix(e.Name(), cardPrefix)
		if ok && !slices.ContainsFunc(except, func(c *sriov.Card) bool { return c.Address == address }) {
			errs = append(errs, b.release(address, network))
		}
	}
	return errors.Join(errs...)
}

// release restores a card if no other network uses it.
func (b *Bus) release(address, network string) error {
	saved, known := records(b.Loans).card(address)
	if !known || !slices.Contains(saved.Networks, network) {
		return nil
	}
	file := records(b.Loans).path(cardPrefix + address)
	saved.Networks = slices.DeleteFunc(saved.Networks, func(name string) bool { return name == network })
	if len(saved.Networks) > 0 {
		return host.WriteJSON(file, 0o600, saved)
	}
	if err := b.restoreCard(address, saved); err != nil {
		return err
	}
	return os.Remove(file)
}

func (b *Bus) restoreCard(address string, saved savedCard) error {
	for _, name := range records(b.Loans).all() { // of nodes that have ended on their own
		if card, _, _ := sriov.ParseName(name); card == address {
			if l, ok := records(b.Loans).loan(name); ok && l.Taken && b.visible(name) {
				if err := b.restore(name, l); err != nil {
					return err
				}
			}
		}
	}
	d, err := b.open(address)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the card is gone
	}
	if err != nil {
		return err
	}
	defer d.sys.Close()
	c, err := b.readCard(d)
	if err != nil || len(c.Used) > 0 {
		return err
	}
	if c.Current != saved.Count {
		if err := b.setCount(&c, saved.Count); err != nil {
			return err
		}
	}
	if c.Up && slices.Contains(c.Interfaces, saved.Down) {
		return b.Links.SetUp(saved.Down, false)
	}
	return nil
}
