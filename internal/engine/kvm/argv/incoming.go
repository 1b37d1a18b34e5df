package argv

import (
	"fmt"
	"strings"

	"orrery/internal/text/pattern"
)

// incoming lets the machine wait for the state of another, which it is told how to get.
func (m *Machine) incoming() []string {
	if !m.Incoming {
		return nil
	}
	return []string{"-incoming", "defer"}
}

var versioned = pattern.New(`^pc-q35-[0-9]{1,3}\.[0-9]{1,3}$`)

// TypeOf returns the type of a machine from what QEMU calls its class. Each version of QEMU has one
// of its own, and those of versions before it.
func TypeOf(class string) (string, error) {
	name := strings.TrimSuffix(class, "-machine")
	if !versioned().MatchString(name) {
		return "", fmt.Errorf("QEMU says that its machine is a %q", class)
	}
	return name, nil
}

// A Bus is what QEMU says of a PCI bus (query-pci).
type Bus struct {
	Devices []struct {
		ID     string `json:"qdev_id"`
		Bridge *Bus   `json:"pci_bridge"`
	} `json:"devices"`
}

// maxSlots bounds how many a machine can have that is asked where its devices are.
const maxSlots = 64

// SlotsOf returns the slots of a machine that runs, from what it says.
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
