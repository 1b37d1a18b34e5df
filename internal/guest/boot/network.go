package boot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
)

// joinNetwork configures the interfaces.
func (c *Config) joinNetwork() error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("the network interfaces cannot be listed: %w", err)
	}
	for _, l := range links {
		if l.Attrs().Flags&net.FlagLoopback != 0 {
			if err := netlink.LinkSetUp(l); err != nil {
				return fmt.Errorf("the loopback interface cannot be set up: %w", err)
			}
		}
	}
	for i := range c.NICs {
		if err := c.NICs[i].up(links); err != nil {
			return fmt.Errorf("network interface %s (%s): %w", c.NICs[i].Name, c.NICs[i].MAC, err)
		}
	}
	return nil
}

// maxReplyBytes limits the size of the file with the interfaces.
const maxReplyBytes = 1 << 20

// readNICs reads the list of a machine's interfaces from its root.
func readNICs(root string) (nics []NIC, err error) {
	f, err := os.OpenInRoot(root, NICsFile)
	if err != nil {
		return nil, fmt.Errorf("the host's list of network interfaces cannot be read: %w", err)
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, maxReplyBytes)).Decode(&nics); err != nil {
		return nil, fmt.Errorf("the host's list of network interfaces, /%s, cannot be parsed: %w", NICsFile, err)
	}
	return nics, nil
}

// joinInterval is the interval at which Join checks whether an interface has appeared.
const joinInterval = 20 * time.Millisecond

// Join configures interfaces of a running machine, each as soon as it appears. It waits for them
// until ctx ends.
func Join(ctx context.Context, nics []NIC) error {
	for i := range nics {
		if err := nics[i].join(ctx); err != nil {
			return fmt.Errorf("network interface %s (%s): %w", nics[i].Name, nics[i].MAC, err)
		}
	}
	return nil
}

func (n *NIC) join(ctx context.Context) error {
	for {
		links, err := netlink.LinkList()
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return err
		}
		if _, missing := n.find(links); missing == nil {
			return n.up(links)
		}
		select {
		case <-ctx.Done():
			_, err := n.find(links)
			return err
		case <-time.After(joinInterval):
		}
	}
}

// up finds the interface and sets its name, its address and its route.
func (n *NIC) up(links []netlink.Link) error {
	l, err := n.find(links)
	if err != nil {
		return err
	}
	if err := n.name(l, links); err != nil {
		return err
	}
	ignoreRouterAdverts(n.Name)
	if n.MTU > 0 {
		if err := netlink.LinkSetMTU(l, n.MTU); err != nil {
			return fmt.Errorf("MTU %d: %w", n.MTU, err)
		}
	}
	if n.Address.IsValid() {
		a, err := netlink.ParseAddr(n.Address.String())
		if err != nil {
			return fmt.Errorf("address %s: %w", n.Address, err)
		}
		if err := netlink.AddrReplace(l, a); err != nil {
			return fmt.Errorf("address %s: %w", n.Address, err)
		}
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return err
	}
	if n.Gateway == "" {
		return nil
	}
	if err := netlink.RouteReplace(&netlink.Route{Gw: net.ParseIP(n.Gateway), LinkIndex: l.Attrs().Index}); err != nil {
		return fmt.Errorf("gateway %s: %w", n.Gateway, err)
	}
	return nil
}

// ignoreRouterAdverts makes the kernel ignore router advertisements on an interface, because networks of
// Orrery have none. It ignores errors: the bridge ports of the senders also drop advertisements.
func ignoreRouterAdverts(name string) {
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/accept_ra", []byte("0"), 0o644)
}

func (n *NIC) find(links []netlink.Link) (netlink.Link, error) {
	var macs []string
	for _, l := range links {
		mac := l.Attrs().HardwareAddr.String()
		if strings.EqualFold(mac, n.MAC) {
			return l, nil
		}
		if mac != "" {
			macs = append(macs, mac)
		}
	}
	if len(macs) == 0 {
		return nil, fmt.Errorf("the machine has none, or the image's kernel has no driver for it")
	}
	return nil, fmt.Errorf("the machine has only %s", strings.Join(macs, ", "))
}

// name renames the interface. The kernel numbers interfaces in the order of detection, so another
// interface may have that name. It then renames the other one temporarily.
func (n *NIC) name(l netlink.Link, links []netlink.Link) error {
	if l.Attrs().Name == n.Name {
		return nil
	}
	for _, other := range links {
		if other.Attrs().Name == n.Name {
			aside := fmt.Sprint("aside", other.Attrs().Index)
			if err := netlink.LinkSetName(other, aside); err != nil {
				return fmt.Errorf("%s cannot be renamed: %w", n.Name, err)
			}
			other.Attrs().Name = aside
		}
	}
	if err := netlink.LinkSetName(l, n.Name); err != nil {
		return fmt.Errorf("%s cannot be renamed: %w", l.Attrs().Name, err)
	}
	l.Attrs().Name = n.Name
	return nil
}
