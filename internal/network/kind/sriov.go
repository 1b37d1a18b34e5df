package kind

import (
	"errors"
	"os"

	"github.com/vishvananda/netlink"

	"orrery/internal/host"
	"orrery/internal/host/sriov"
	"orrery/internal/observe"
	of "orrery/internal/observe/sriov"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// A pool is a network of which each node has a virtual function of the network's interfaces.
type pool struct{ exclusive }

func (pool) Check(n spec.Network) error {
	if n.Parent == "" {
		return problem.New(problem.Unable, "network %s: no interface of the host is set", n.Name)
	}
	return nil
}

func (pool) Make(n spec.Network) error {
	err := sriov.Local.Prepare(n.Bridge, of.Interfaces(n.Parent))
	if p := (*problem.Problem)(nil); errors.As(err, &p) {
		p.What = "network " + n.Name + ": " + p.What
	}
	return err
}

func (pool) Remove(n spec.Network) error { return sriov.Local.Release(n.Bridge) }

// Drift of a pool, after its driver was loaded again or a card was set down.
const (
	functionsMissing observe.NetworkDrift = "its virtual functions are missing"
	cardDown         observe.NetworkDrift = "its interface is down"
)

func (pool) Observe(n *observe.Network, _ netlink.Link) {
	cards, err := sriov.Local.Cards()
	if err != nil {
		return // the host's cards are observed as well, which reports it
	}
	for _, c := range of.Of(cards, of.Interfaces(n.Parent)) {
		if c.Current == 0 && c.Total > 0 {
			n.AddDrift(functionsMissing)
		}
		if !c.Up {
			n.AddDrift(cardDown)
		}
	}
}

// Attach moves the interface of a function and then renames it, since the host's udev can rename it
// only before.
func (pool) Attach(nic spec.NIC, inner string, space *os.File) error {
	name, err := sriov.Local.Interface(nic.Parent)
	if err != nil {
		return err
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := sriov.Local.MarkTaken(nic.Parent); err != nil {
		return err
	}
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer here.Close()
	if err := netlink.LinkSetNsFd(link, int(space.Fd())); err != nil {
		return err
	}
	return host.InNetNS(space, func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetName(link, inner); err != nil {
			return errors.Join(err, netlink.LinkSetNsFd(link, int(here.Fd())))
		}
		return nil
	})
}
