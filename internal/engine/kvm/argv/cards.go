package argv

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"orrery/internal/guest/boot"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// cards returns the network cards.
func (m *Machine) cards(files *Files, slots Slots) []string {
	var args []string
	for _, nic := range m.Node.NICs {
		args = append(args, m.card(nic, files, slots)...)
	}
	return args
}

// card returns one network card. It is not for booting, so it needs no ROM.
func (m *Machine) card(nic spec.NIC, files *Files, slots Slots) []string {
	model := map[string]string{site.Virtio: virtioNet, site.E1000: "e1000",
		site.RTL8139: "rtl8139"}[cmp.Or(m.Node.VM.Model, site.Virtio)]
	id := CardID(nic)
	queues := Queues(m.Node)
	netdev := fmt.Sprintf("tap,id=%s,%s", id, fdOption("fd", queues, func(i int) int { return files.Add(Tap(nic, i)) }))
	if m.usesVHost() {
		netdev += ",vhost=on," + fdOption("vhostfd", queues, func(i int) int { return files.Add(VHost(nic, i)) })
	}
	device := fmt.Sprintf("%s,id=%s,netdev=%s,mac=%s,romfile=%s", model, id, id, nic.MAC, slots.bus(id))
	if queues > 1 {
		device += fmt.Sprintf(",mq=on,vectors=%d", vectors(queues))
	}
	return []string{"-netdev", netdev, "-device", device}
}

// A Card describes a network card to QEMU's monitor: its backend, and the device that the guest
// sees.
type Card struct{ Netdev, Device map[string]any }

// CardOf describes the card of an interface for a slot of a running machine. QEMU must have
// received the files of its queues: Tap and, if the host's kernel serves it, VHost.
func CardOf(n *spec.Node, nic spec.NIC, slot string, vhost bool) Card {
	id, queues := CardID(nic), Queues(n)
	files := func(name func(spec.NIC, int) string) string {
		all := make([]string, queues)
		for i := range all {
			all[i] = name(nic, i)
		}
		return strings.Join(all, ":")
	}
	option := map[bool]string{true: "fd", false: "fds"}[queues == 1]
	c := Card{
		Netdev: map[string]any{"type": "tap", "id": id, option: files(Tap)},
		Device: map[string]any{"driver": virtioNet, "id": id, "netdev": id, "mac": nic.MAC, "romfile": "", "bus": slot},
	}
	if vhost {
		c.Netdev["vhost"], c.Netdev["vhost"+option] = true, files(VHost)
	}
	if queues > 1 {
		c.Device["mq"], c.Device["vectors"] = true, vectors(queues)
	}
	return c
}

// virtioNet is the card model that can be plugged and unplugged while the machine runs.
const virtioNet = "virtio-net-pci"

// vectors returns how many interrupts a card with so many queues has. Each queue has two, one for
// each direction. The card has one for configuration changes and one for its control queue.
func vectors(queues int) int { return 2*queues + 2 }

// fdOption returns an option with the file numbers of all queues.
func fdOption(option string, queues int, take func(int) int) string {
	if queues == 1 {
		return fmt.Sprintf("%s=%d", option, take(0))
	}
	fds := make([]string, queues)
	for i := range fds {
		fds[i] = strconv.Itoa(take(i))
	}
	return option + "s=" + strings.Join(fds, ":")
}

// Queues returns how many queue pairs each card of a node has.
func Queues(n *spec.Node) int { return max(1, n.VM.Queues) }

// usesVHost reports whether the host's kernel serves the cards, with one thread for each queue,
// without QEMU.
func (m *Machine) usesVHost() bool { return m.VHost && WantsVHost(m.Node) }

// WantsVHost reports whether the host's kernel should serve the cards of a node, if it can.
func WantsVHost(n *spec.Node) bool {
	return cmp.Or(n.VM.Model, site.Virtio) == site.Virtio && (n.VM.VHost == nil || *n.VM.VHost)
}

// CardID returns QEMU's id of an interface's card, and of the card's backend.
func CardID(nic spec.NIC) string { return "card-" + nic.Network }

// GuestNICs returns the interfaces in the form in which guests read them.
func GuestNICs(nics []spec.NIC) []boot.NIC {
	all := []boot.NIC{}
	for _, nic := range nics {
		all = append(all, boot.NIC{MAC: nic.MAC, Name: nic.Name, Address: nic.Address, Gateway: nic.Gateway, MTU: nic.MTU})
	}
	return all
}
