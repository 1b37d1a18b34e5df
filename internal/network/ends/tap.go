package ends

import (
	"errors"
	"os"

	"github.com/vishvananda/netlink"

	"orrery/internal/host/shape"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/traffic"
)

// OpenTap makes a tap device for the host's end of a node's interface, unless it exists, and puts
// it on its network. It opens the device once for each queue by which a virtual machine sends and
// receives in parallel. The device outlives the process that has it open, until network.RemoveLinks
// removes it. Only root may open it again, and the machine receives it open. The caller must guard
// its port before (network.AddAntiSpoof).
func OpenTap(nic spec.NIC, kind string, queues int) ([]*os.File, error) {
	if !site.KindOf(kind).HasHostEnds() {
		return nil, problem.New(problem.Unable, "interface %s: a virtual machine cannot use a network of kind %s",
			nic.Name, kind)
	}
	open, err := openTap(nic, kind, queues)
	if err == nil {
		return open, nil
	}
	p := problem.New(problem.Failed, "link %s of interface %s cannot be created", nic.HostIfName, nic.Name).Because(err)
	if errors.Is(err, os.ErrNotExist) {
		return nil, p.Try("modprobe tun; a virtual machine needs /dev/net/tun")
	}
	return nil, p
}

func openTap(nic spec.NIC, kind string, queues int) (open []*os.File, err error) {
	tap := newTap(nic.HostIfName, queues)
	if err := netlink.LinkAdd(tap); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closed, removed := closeAll(tap.Fds), netlink.LinkDel(tap)
			err = errors.Join(err, closed, removed)
		}
	}()
	link, err := netlink.LinkByName(nic.HostIfName)
	if err != nil {
		return nil, err
	}
	if err := netlink.LinkSetHardwareAddr(link, MAC(nic.HostIfName)); err != nil {
		return nil, err
	}
	return tap.Fds, attach(link, nic, kind)
}

// Claim makes an existing link, whose other end a virtual machine has, the host's end of a node's
// interface. It renames the link and puts it on its network. The caller must guard its port before
// (network.AddAntiSpoof).
func Claim(name string, nic spec.NIC, kind string) error {
	err := claim(name, nic, kind)
	if err != nil {
		return problem.New(problem.Failed, "link %s cannot be used for interface %s", name, nic.Name).Because(err)
	}
	return nil
}

func claim(name string, nic spec.NIC, kind string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if name != nic.HostIfName {
		if err := netlink.LinkSetDown(link); err != nil {
			return err
		}
		if err := netlink.LinkSetName(link, nic.HostIfName); err != nil {
			return err
		}
	}
	return attach(link, nic, kind)
}

// attach puts the host's end of a link on its network and sets it up.
func attach(link netlink.Link, nic spec.NIC, kind string) error {
	if err := DisableIPv6(nic.HostIfName); err != nil {
		return err
	}
	if err := netlink.LinkSetMTU(link, nic.MTU); err != nil {
		return err
	}
	if nic.Traffic != (traffic.Limits{}) { // before the first frame
		if err := shape.Set(link, nic.Traffic); err != nil {
			return err
		}
	}
	if site.KindOf(kind).Routed {
		return SetUpRouted(nic)
	}
	bridge, err := netlink.LinkByName(nic.Bridge)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMaster(link, bridge); err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// newTap returns a new tap, not yet added, that belongs to root. Each packet has a header with
// which the machine leaves checksums to the host.
func newTap(name string, queues int) *netlink.Tuntap {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	tap := &netlink.Tuntap{LinkAttrs: attrs, Mode: netlink.TUNTAP_MODE_TAP,
		Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_VNET_HDR, Queues: max(queues, 1)}
	if queues > 1 {
		tap.Flags |= netlink.TUNTAP_MULTI_QUEUE
	}
	return tap
}

func closeAll(files []*os.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
