package argv

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// minSpareSlots is the minimum number of free slots for devices that are plugged while the machine runs.
const minSpareSlots = 4

// Slots say where the devices are that can be plugged and unplugged while the machine runs. Each
// has a PCI Express port of its own. A machine that takes over from another has its devices in the
// same slots as that one.
type Slots struct {
	Number int            // number of slots, or 0 for as many as needed
	Taken  map[string]int // slots by device ids; other devices get the first free slots
}

// Slot returns QEMU's name of a slot, which is a bus with room for one device.
func Slot(number int) string { return fmt.Sprint("slot", number) }

// pluggableIDs returns the ids of a node's devices that have a slot. Cards of other models than virtio
// support only plain PCI.
func pluggableIDs(n *spec.Node) (ids []string) {
	if cmp.Or(n.VM.Model, site.Virtio) == site.Virtio {
		for _, nic := range n.NICs {
			ids = append(ids, CardID(nic))
		}
	}
	for _, d := range n.VM.Drives() {
		ids = append(ids, DriveID(d))
	}
	return ids
}

// forNode returns slots for exactly the devices of a node, in full groups of ports.
func (s Slots) forNode(n *spec.Node) Slots {
	ids, taken, used := pluggableIDs(n), map[string]int{}, map[int]bool{}
	for id, slot := range s.Taken {
		taken[id], used[slot] = slot, true
	}
	next := 0
	for _, id := range ids {
		if _, ok := taken[id]; ok {
			continue
		}
		for used[next] {
			next++
		}
		taken[id], used[next] = next, true
	}
	maps.DeleteFunc(taken, func(id string, _ int) bool { return !slices.Contains(ids, id) })
	return Slots{cmp.Or(s.Number, (len(ids)+minSpareSlots+7)/8*8), taken}
}

// bus returns the option that puts a device into its slot, or "" if it has none and QEMU chooses
// the place.
func (s Slots) bus(id string) string {
	if slot, ok := s.Taken[id]; ok {
		return ",bus=" + Slot(slot)
	}
	return ""
}

// ports returns the ports, in groups of eight functions of one PCI device, from device 0x10 on.
// QEMU uses the devices below.
func (s Slots) ports() []string {
	const functions, firstDevice = 8, 0x10
	var args []string
	for i := range s.Number {
		args = append(args, "-device",
			fmt.Sprintf("pcie-root-port,id=%s,chassis=%d,bus=pcie.0,addr=%#x.%d,multifunction=on,io-reserve=0", Slot(i), i+1,
				firstDevice+i/functions, i%functions))
	}
	return args
}
