package sriov

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/vishvananda/netlink"
)

// Settings are what a card allows a function to do.
type Settings struct {
	VLAN       int  `json:"vlan"`
	SpoofCheck bool `json:"spoof_check"`
	Trust      bool `json:"trust"`
}

// A Setting is a setting of a function that its card enforces (ip-link(8)).
type Setting string

// The settings.
const (
	MAC        Setting = "mac"
	VLAN       Setting = "vlan"
	SpoofCheck Setting = "spoofchk"
	Trust      Setting = "trust"
)

// Links is the part of netlink that a Bus uses.
type Links interface {
	SetUp(name string, up bool) error
	Rename(name, to string) error
	SetMAC(name, mac string) error
	SetMTU(name string, mtu int) error
	// Addresses returns the addresses of an interface, except link-local ones.
	Addresses(name string) ([]string, error)
	// Settings returns the settings of a function of a card, or zero Settings if its driver reports
	// none.
	Settings(card string, index int) (Settings, error)
	// Set sets a setting of a function of a card, to a value of ip-link(8).
	Set(card string, index int, what Setting, value string) error
}

// kernel is the Links of this machine.
type kernel struct{}

func with(name string, do func(netlink.Link) error) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return do(link)
}

func (kernel) SetUp(name string, up bool) error {
	if up {
		return with(name, netlink.LinkSetUp)
	}
	return with(name, netlink.LinkSetDown)
}

func (kernel) Rename(name, to string) error {
	return with(name, func(link netlink.Link) error { return netlink.LinkSetName(link, to) })
}

func (kernel) SetMAC(name, mac string) error {
	address, err := net.ParseMAC(mac)
	if err != nil {
		return err
	}
	return with(name, func(link netlink.Link) error { return netlink.LinkSetHardwareAddr(link, address) })
}

func (kernel) SetMTU(name string, mtu int) error {
	return with(name, func(link netlink.Link) error { return netlink.LinkSetMTU(link, mtu) })
}

func (kernel) Addresses(name string) (all []string, err error) {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if errors.Is(err, netlink.ErrDumpInterrupted) { // an address that is being set is not found
		err = nil
	}
	for _, a := range found {
		if !a.IP.IsLinkLocalUnicast() || a.IP.To4() != nil {
			all = append(all, a.IPNet.String())
		}
	}
	return all, err
}

func (kernel) Settings(card string, index int) (s Settings, err error) {
	return s, with(card, func(link netlink.Link) error {
		for _, f := range link.Attrs().Vfs {
			if f.ID == index {
				s = Settings{VLAN: f.Vlan, SpoofCheck: f.Spoofchk, Trust: f.Trust == 1}
			}
		}
		return nil
	})
}

func (kernel) Set(card string, index int, what Setting, value string) error {
	return with(card, func(link netlink.Link) error {
		switch what {
		case MAC:
			address, err := net.ParseMAC(value)
			if err != nil {
				return err
			}
			return netlink.LinkSetVfHardwareAddr(link, index, address)
		case VLAN:
			id, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			return netlink.LinkSetVfVlan(link, index, id)
		case SpoofCheck:
			return netlink.LinkSetVfSpoofchk(link, index, value == onOff(true))
		case Trust:
			return netlink.LinkSetVfTrust(link, index, value == onOff(true))
		}
		return fmt.Errorf("setting %s is unknown", what)
	})
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
