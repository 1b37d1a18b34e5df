package argv

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"orrery/internal/observe"
)

// TestIncoming: a machine that takes over from another has the same type, and waits for its state.
func TestIncoming(t *testing.T) {
	args, _, err := (&Machine{Node: someNode(), Boot: someBoot, Accel: observe.TCG, Type: "pc-q35-8.2", Incoming: true}).
		CommandLine()
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.Index(args, "-machine"); args[i+1] != "pc-q35-8.2,memory-backend=memory,usb=off,vmport=off" ||
		!slices.Equal(args[len(args)-2:], []string{"-incoming", "defer"}) {
		t.Errorf("%q", args)
	}
}

// TestTypeOf: only a valid type reaches the command line, whatever a QEMU answers that its guest
// has taken over.
func TestTypeOf(t *testing.T) {
	for class, want := range map[string]string{"pc-q35-7.2-machine": "pc-q35-7.2", "pc-q35-10.0": "pc-q35-10.0",
		"pc-q35-7.2,kernel=/etc/shadow": "", "none-machine": "", "": ""} {
		if got, err := MachineType(class); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", class, got, err)
		}
	}
}

// TestSlotsOf: the slots of devices are read from QEMU's answer, as far as that is plausible.
func TestSlotsOf(t *testing.T) {
	var buses []Bus
	err := json.Unmarshal([]byte(
		`[{"bus":0,"devices":[{"qdev_id":"","class_info":{}},{"qdev_id":"slot0","pci_bridge":{"devices":[{"qdev_id":"card-lan"}]}},{"qdev_id":"slot1","pci_bridge":{}},
		{"qdev_id":"slot2","pci_bridge":{"devices":[{"qdev_id":"card-fast"}]}},{"qdev_id":"slot-7","pci_bridge":{"devices":[{"qdev_id":"no"}]}},{"qdev_id":"slot9999","pci_bridge":{}},{"qdev_id":"slotx","pci_bridge":{}}]}]`),
		&buses)
	if err != nil {
		t.Fatal(err)
	}
	if s := SlotsOf(buses); s.Number != 3 || !maps.Equal(s.Taken, map[string]int{"card-lan": 0, "card-fast": 2}) {
		t.Errorf("%+v", s)
	}
}
