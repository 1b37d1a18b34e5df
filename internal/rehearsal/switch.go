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

// theSwitch is a bridge in the keeper's network namespace. Each of its ports has the seat name of
// its host.
const theSwitch = "switch"

func makeSwitch() error {
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: theSwitch}}); err != nil {
		return fmt.Errorf("the switch: %w", err)
	}
	return raise(theSwitch)
}

func raise(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// plug connects a host that has just started to the switch, and cuts its link if it was cut before.
func (k *Keeper) plug(number int) error {
	port := seat(number)
	unplug(number)
	at, err := netlink.LinkByName(theSwitch)
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
	return k.cut()
}

// A Wire is the link between a host and the switch, with its MTU.
type Wire struct{ Host, MTU int }

// Narrow sets the MTU of a host's link.
func (k *Keeper) Narrow(w Wire, _ *int) error {
	link, err := netlink.LinkByName(seat(w.Host))
	if err != nil {
		return err
	}
	return netlink.LinkSetMTU(link, w.MTU)
}

// unplug removes the port of a host that has ended. The link would also disappear with the host's
// namespace, but later.
func unplug(number int) {
	if link, err := netlink.LinkByName(seat(number)); err == nil {
		_ = netlink.LinkDel(link)
	}
}

// cut applies the state of all links. A link that is cut in one direction stays up, and the switch
// drops the packets in that direction.
func (k *Keeper) cut() error {
	var errs []error
	for number, m := range k.hosts {
		if m.init == nil {
			continue
		}
		link, err := netlink.LinkByName(seat(number))
		if err == nil && k.cuts[number] == Both {
			err = netlink.LinkSetDown(link)
		} else if err == nil {
			err = netlink.LinkSetUp(link)
		}
		errs = append(errs, err)
	}
	nft := host.Program(context.Background(), "nft", "-f", "-")
	nft.Stdin = strings.NewReader(drops(k.cuts))
	if out, err := nft.CombinedOutput(); err != nil {
		errs = append(errs, fmt.Errorf("nft: %w\n%s", err, out))
	}
	return errors.Join(errs...)
}

// drops returns the rules by which the switch drops packets in the directions that are cut.
func drops(cuts map[int]Way) string {
	var b strings.Builder
	b.WriteString("table bridge cuts\ndelete table bridge cuts\ntable bridge cuts {\n\tchain forward {\n\t\ttype filter hook forward priority 0;\n")
	for _, number := range slices.Sorted(maps.Keys(cuts)) {
		switch cuts[number] {
		case To:
			fmt.Fprintf(&b, "\t\toifname %q drop\n", seat(number))
		case From:
			fmt.Fprintf(&b, "\t\tiifname %q drop\n", seat(number))
		}
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}

// address sets the host's addresses in its own namespace, and adds routes to hosts on other
// subnets.
func (b birth) address() error {
	if err := raise("lo"); err != nil {
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
			if b.self().nextTo(to.Addr()) {
				continue
			}
			alone := netip.PrefixFrom(to.Addr(), to.Addr().BitLen())
			if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: network(alone),
				Scope: netlink.SCOPE_LINK}); err != nil {
				return fmt.Errorf("the way to %s: %w", to, err)
			}
		}
	}
	return nil
}

func network(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// nextTo reports whether an address is on one of the host's subnets.
func (p Place) nextTo(a netip.Addr) bool {
	return slices.ContainsFunc(p.Addresses, func(own netip.Prefix) bool { return own.Contains(a) })
}
