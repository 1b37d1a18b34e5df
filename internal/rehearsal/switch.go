package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"orrery/internal/host"
)

// switchName is a bridge in the supervisor's network namespace. Each of its ports is named
// after its host.
const switchName = "switch"

func makeSwitch() error {
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: switchName}}); err != nil {
		return fmt.Errorf("the switch: %w", err)
	}
	return setLinkUp(switchName)
}

func setLinkUp(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// plug connects a host that has just started to the switch, and cuts its link if it was cut before.
func (k *Supervisor) plug(number int) error {
	port := portName(number)
	unplug(number)
	at, err := netlink.LinkByName(switchName)
	if err != nil {
		return err
	}
	pair := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: port, MasterIndex: at.Attrs().Index},
		PeerName:  "eth0", PeerHardwareAddr: net.HardwareAddr{2, 0, 10, 8, 1, byte(number)},
		PeerNamespace: netlink.NsPid(k.hosts[number].init.Process.Pid),
	}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("the link of %s: %w", port, err)
	}
	return k.applyCuts()
}

// A Link is the link between a host and the switch, with its MTU.
type Link struct{ Host, MTU int }

// SetMTU sets the MTU of a host's link.
func (k *Supervisor) SetMTU(w Link, _ *int) error {
	link, err := netlink.LinkByName(portName(w.Host))
	if err != nil {
		return err
	}
	return netlink.LinkSetMTU(link, w.MTU)
}

// unplug removes the port of a host that has ended. The link would also disappear with the host's
// namespace, but later.
func unplug(number int) {
	if link, err := netlink.LinkByName(portName(number)); err == nil {
		_ = netlink.LinkDel(link)
	}
}

// applyCuts applies the state of all links. A link that is cut in one direction stays up, and the switch
// drops the packets in that direction.
func (k *Supervisor) applyCuts() error {
	var errs []error
	for number, m := range k.hosts {
		if m.init == nil {
			continue
		}
		link, err := netlink.LinkByName(portName(number))
		if err == nil && k.cuts[number] == Both {
			err = netlink.LinkSetDown(link)
		} else if err == nil {
			err = netlink.LinkSetUp(link)
		}
		errs = append(errs, err)
	}
	nft := host.Program(context.Background(), "nft", "-f", "-")
	nft.Stdin = strings.NewReader(dropRules(k.cuts))
	if out, err := nft.CombinedOutput(); err != nil {
		errs = append(errs, fmt.Errorf("nft: %w\n%s", err, out))
	}
	return errors.Join(errs...)
}

// dropRules returns the rules by which the switch drops packets in the directions that are cut.
func dropRules(cuts map[int]Direction) string {
	var b strings.Builder
	b.WriteString("table bridge cuts\ndelete table bridge cuts\ntable bridge cuts {\n\tchain forward {\n\t\ttype filter hook forward priority 0;\n")
	for _, number := range slices.Sorted(maps.Keys(cuts)) {
		switch cuts[number] {
		case To:
			fmt.Fprintf(&b, "\t\toifname %q drop\n", portName(number))
		case From:
			fmt.Fprintf(&b, "\t\tiifname %q drop\n", portName(number))
		}
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}

// address sets the host's addresses in its own namespace, and adds routes to hosts on other
// subnets.
func (b hostConfig) address() error {
	if err := setLinkUp("lo"); err != nil {
		return err
	}
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	for _, a := range b.self().Addresses {
		if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: network(a)}); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("the address %s: %w", a, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	for _, p := range b.Places {
		for _, to := range p.Addresses {
			if b.self().onSubnet(to.Addr()) {
				continue
			}
			alone := netip.PrefixFrom(to.Addr(), to.Addr().BitLen())
			if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: network(alone),
				Scope: netlink.SCOPE_LINK}); err != nil {
				return fmt.Errorf("the route to %s: %w", to, err)
			}
		}
	}
	return nil
}

func network(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// onSubnet reports whether an address is on one of the host's subnets.
func (p Place) onSubnet(a netip.Addr) bool {
	return slices.ContainsFunc(p.Addresses, func(own netip.Prefix) bool { return own.Contains(a) })
}
