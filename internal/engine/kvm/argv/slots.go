package argv

import (
	"cmp"
	"fmt"
	"slices"

	"orrery/internal/site"
)

// spare is how many slots at least are left for devices that come while the machine runs.
const spare = 4

// Slots say where devices are that can come and go while the machine runs: each has a port of PCI Express to itself. A machine that takes another's place, of which
// devices came and went, has them where that had them.
type Slots struct {
	Number int            // of slots; 0: as many as it takes
	Taken  map[string]int // by ids of devices; one that is not here gets the first that is free
}

// Slot is what QEMU calls a slot: the bus on which there is room for one device.
func Slot(number int) string { return fmt.Sprint("slot", number) }

// slotted are the devices that have a slot.
func (m *Machine) slotted() (ids []string) {
	if m.expressCards() {
		for _, nic := range m.Node.NICs {
			ids = append(ids, CardID(nic))
		}
	}
	for _, d := range m.Node.VM.Drives() {
		ids = append(ids, DriveID(d))
	}
	return ids
}

// expressCards reports whether the cards may be in a slot: those of other models know plain PCI only.
func (m *Machine) expressCards() bool {
	return cmp.Or(m.Node.VM.Model, site.Virtio) == site.Virtio
}

// taken returns the slot of each device.
func (m *Machine) taken() map[string]int {
	all, used := map[string]int{}, map[int]bool{}
	for id, slot := range m.Slots.Taken {
		all[id], used[slot] = slot, true
	}
	next := 0
	for _, id := range m.slotted() {
		if _, ok := all[id]; ok {
			continue
		}
		for used[next] {
			next++
		}
		all[id], used[next] = next, true
	}
	return all
}

// at puts a device into its slot; one that has none goes where QEMU puts it.
func (m *Machine) at(id string) string {
	if !slices.Contains(m.slotted(), id) {
		return ""
	}
	return ",bus=" + Slot(m.taken()[id])
}

// slots are the ports, in groups of eight functions of one device, the first of which QEMU gives other places.
func (m *Machine) slots() []string {
	const functions, firstDevice = 8, 0x10
	var args []string
	for i := range m.number() {
		args = append(args, "-device", fmt.Sprintf("pcie-root-port,id=%s,chassis=%d,bus=pcie.0,addr=%#x.%d,multifunction=on,io-reserve=0", Slot(i), i+1, firstDevice+i/functions, i%functions))
	}
	return args
}

// number is how many slots there are: full groups.
func (m *Machine) number() int {
	if m.Slots.Number != 0 {
		return m.Slots.Number
	}
	return (len(m.slotted()) + spare + 7) / 8 * 8
}
