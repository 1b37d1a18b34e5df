package argv

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// spare is how many slots at least are left for devices that come while the machine runs.
const spare = 4

// Slots say where devices are that can come and go while the machine runs: each has a port of PCI
// Express to itself. A machine that takes another's place, of which devices came and went, has them
// where that had them.
type Slots struct {
	Number int            // of slots; 0: as many as it takes
	Taken  map[string]int // by ids of devices; one that is not here gets the first that is free
}

// Slot is what QEMU calls a slot: the bus on which there is room for one device.
func Slot(number int) string { return fmt.Sprint("slot", number) }

// slotted are the devices of a node that have a slot. Cards of other models than Virtio know plain PCI only.
func slotted(n *spec.Node) (ids []string) {
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

// with returns the slots with a place for each device of a node, and for no other, in full groups of ports.
func (s Slots) with(n *spec.Node) Slots {
	ids, taken, used := slotted(n), map[string]int{}, map[int]bool{}
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
	return Slots{cmp.Or(s.Number, (len(ids)+spare+7)/8*8), taken}
}

// bus puts a device into its slot; one that has none goes where QEMU puts it.
func (s Slots) bus(id string) string {
	if slot, ok := s.Taken[id]; ok {
		return ",bus=" + Slot(slot)
	}
	return ""
}

// ports are in groups of eight functions of one device, the first of which QEMU gives other places.
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
