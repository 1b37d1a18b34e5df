package argv

import (
	"fmt"
	"strings"

	"orrery/internal/text/pattern"
)

// incoming makes the machine wait for the state of another machine, whose source it is told later.
func (m *Machine) incoming() []string {
	if !m.Incoming {
		return nil
	}
	return []string{"-incoming", "defer"}
}

var machineTypePattern = pattern.New(`^pc-q35-[0-9]{1,3}\.[0-9]{1,3}$`)

// MachineType returns the machine type from QEMU's name of its class. Each version of QEMU has a type of
// its own, and the types of earlier versions.
func MachineType(class string) (string, error) {
	name := strings.TrimSuffix(class, "-machine")
	if !machineTypePattern().MatchString(name) {
		return "", fmt.Errorf("QEMU reports the machine type %q", class)
	}
	return name, nil
}

// A Bus is a PCI bus in QEMU's answer to query-pci.
type Bus struct {
	Devices []struct {
		ID     string `json:"qdev_id"`
		Bridge *Bus   `json:"pci_bridge"`
	} `json:"devices"`
}

// maxSlots limits how many slots SlotsOf accepts.
const maxSlots = 64

// SlotsOf returns the slots of a running machine from its answer to query-pci.
func SlotsOf(buses []Bus) Slots {
	s := Slots{Taken: map[string]int{}}
	for _, b := range buses {
		for _, d := range b.Devices {
			var number int
			if d.Bridge == nil || s.Number == maxSlots {
				continue
			}
			if _, err := fmt.Sscanf(d.ID, "slot%d", &number); err != nil || number < 0 || number >= maxSlots {
				continue
			}
			s.Number++
			for _, in := range d.Bridge.Devices {
				s.Taken[in.ID] = number
			}
		}
	}
	return s
}
