package sitefile

import (
	"os"
	"reflect"
	"testing"

	"orrery/internal/site"
)

// TestMachines: a setting in [defaults] applies only to nodes that can have it, because a site may
// have containers and virtual machines.
func TestMachines(t *testing.T) {
	text, err := os.ReadFile("testdata/valid-machines.toml")
	if err != nil {
		t.Fatal(err)
	}
	s := mustLoad(t, string(text))
	one, two, three := &s.Nodes[0], &s.Nodes[1], &s.Nodes[2]
	if one.Limits != (site.Limits{Cpus: 1.5, Memory: 512 << 20}) || one.Privileged ||
		!reflect.DeepEqual(one.VM, site.VM{CPU: "qemu64"}) || one.Limits.VCPUs() != 2 {
		t.Errorf("one: %+v", one)
	}
	if two.Limits != (site.Limits{Cpus: 1.5, Memory: 1 << 30}) ||
		!reflect.DeepEqual(two.VM, site.VM{CPU: "qemu64", Model: "rtl8139"}) {
		t.Errorf("two: %+v", two)
	}
	if l := three.Limits; l.Swap == nil || l.Pids != 100 || l.Memory != 64<<20 || !three.Privileged ||
		!three.VM.IsZero() || three.Virtual() {
		t.Errorf("three: %+v", three)
	}
	s = mustLoad(t, `
site.name = "x"
image.debian.suite = "bookworm"
defaults.memory = "256MiB"
node.one = { id = 1, engine = "kvm" }
`)
	if n := &s.Nodes[0]; n.Limits != (site.Limits{Memory: 256 << 20}) || n.Limits.VCPUs() != 1 {
		t.Errorf("%+v", n)
	}
}

// TestDevices checks the host hardware that a machine uses.
func TestDevices(t *testing.T) {
	text, err := os.ReadFile("testdata/valid-devices.toml")
	if err != nil {
		t.Fatal(err)
	}
	s := mustLoad(t, string(text))
	zero, no := 0, false
	want := site.VM{Queues: 4, VHost: &no, Pin: site.PinPerCPU, Numa: &zero, Hugepages: 2 << 20,
		PCI: []string{"0000:03:00.0", "0000:03:00.1"}}
	if got := s.Nodes[0].VM; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
