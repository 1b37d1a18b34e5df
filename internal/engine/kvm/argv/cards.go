package argv

import (
	"cmp"
	"fmt"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// cards are the network cards.
func (m *Machine) cards(files *Files) []string {
	var args []string
	for _, nic := range m.Node.NICs {
		args = append(args, m.card(nic, files)...)
	}
	return args
}

// card is one of them. It boots nothing, so it needs no ROM.
func (m *Machine) card(nic spec.NIC, files *Files) []string {
	model := map[string]string{site.Virtio: "virtio-net-pci", site.E1000: "e1000", site.RTL8139: "rtl8139"}[cmp.Or(m.Node.VM.Model, site.Virtio)]
	id := CardID(nic)
	return []string{
		"-netdev", fmt.Sprintf("tap,id=%s,fd=%d", id, files.Take(Tap(nic, 0))),
		"-device", fmt.Sprintf("%s,id=%s,netdev=%s,mac=%s,romfile=%s", model, id, id, nic.MAC, m.at(id)),
	}
}

// CardID is what QEMU calls the card of an interface, and what is behind it.
func CardID(nic spec.NIC) string { return "card-" + nic.Network }
