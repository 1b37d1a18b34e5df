package argv

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"orrery/internal/guest/boot"
	"orrery/internal/image/kernel"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/transport/rpc"
)

func someNode() *spec.Node {
	return &spec.Node{
		Site: "karoo", Name: "db", ID: 101, Engine: site.KVM, Kernel: "abc",
		Limits: site.Limits{Cpus: 1.5, Memory: 256 << 20},
		NICs: []spec.NIC{
			{Network: "lan", Name: "eth0", HostIfName: "orv1", MAC: "02:00:00:00:00:01",
				Address: netip.MustParsePrefix("10.1.0.2/24"), Gateway: "10.1.0.1", MTU: 1500},
			{Network: "fast", Name: "eth1", HostIfName: "orv2", MAC: "02:00:00:00:00:02",
				Address: netip.MustParsePrefix("10.2.0.2/24"), MTU: 9000},
		},
	}
}

var someBoot = &kernel.Boot{Kernel: "/store/abc/vmlinux", Initramfs: "/store/abc/initramfs"}

// TestLine: the complete command line of a machine. A change here changes what guests see.
func TestLine(t *testing.T) {
	args, _, err := (&Machine{Node: someNode(), Boot: someBoot, Accel: observe.TCG}).CommandLine()
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("testdata/line")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(args, "\n") + "\n"; got != string(golden) {
		t.Errorf("got\n%s", got)
	}
}

// TestTimerCheck: on KVM, the kernel needs no no_timer_check.
func TestTimerCheck(t *testing.T) {
	for accel, want := range map[string]bool{observe.KVM: false, observe.TCG: true} {
		args, _, err := (&Machine{Node: someNode(), Boot: someBoot, Accel: accel}).CommandLine()
		if said := strings.Contains(strings.Join(args, " "), " no_timer_check "); err != nil || said != want {
			t.Errorf("%s: %t, %v", accel, said, err)
		}
	}
}

// TestLineOf: options that depend on the site file and the host.
func TestLineOf(t *testing.T) {
	wantArgs := func(n *spec.Node, accel string, want ...string) {
		t.Helper()
		args, _, err := (&Machine{Node: n, Boot: someBoot, Accel: accel}).CommandLine()
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(args); i++ {
			if slices.Equal(args[i:i+2], want) {
				return
			}
		}
		t.Errorf("%q is not in %q", want, args)
	}
	n := someNode()
	wantArgs(n, observe.KVM, "-accel", "kvm")
	wantArgs(n, observe.KVM, "-cpu", "host")
	wantArgs(n, observe.TCG, "-cpu", "qemu64,cx16=off")
	n.VM = site.VM{CPU: "Nehalem", Model: site.E1000}
	wantArgs(n, observe.KVM, "-cpu", "Nehalem")
	wantArgs(n, observe.TCG, "-device", "e1000,id=card-lan,netdev=card-lan,mac=02:00:00:00:00:01,romfile=")
	n.Limits = site.Limits{}
	wantArgs(n, observe.TCG, "-smp", "1,maxcpus=2") // because virtiofsd sees the memory, too
	wantArgs(n, observe.KVM, "-smp", "1")
	wantArgs(n, observe.TCG, "-m", "524288K")
}

// TestTooMuch: a kernel command line that is too long is an error, and is not cut off.
func TestTooMuch(t *testing.T) {
	n := someNode()
	n.Name = strings.Repeat("long", 500)
	if _, _, err := (&Machine{Node: n, Boot: someBoot,
		Accel: observe.TCG}).CommandLine(); problem.ExitCode(err) != int(problem.Mistake) {
		t.Error(err)
	}
}

// TestFiles: each file has a number of its own, beginning with the first.
func TestFiles(t *testing.T) {
	args, files, err := (&Machine{Node: someNode(), Boot: someBoot, Accel: observe.TCG}).CommandLine()
	if err != nil {
		t.Fatal(err)
	}
	names := files.Names()
	if want := 4 + rpc.Ports + 2; len(names) != want || len(slices.Compact(slices.Sorted(slices.Values(names)))) != want {
		t.Errorf("%d files, not %d: %q", len(names), want, names)
	}
	for i, name := range names {
		if !slices.ContainsFunc(args, func(arg string) bool {
			return slices.Contains(strings.Split(arg, ","), fmt.Sprint("fd=", firstFD+i))
		}) {
			t.Errorf("nothing uses file %d, %s", firstFD+i, name)
		}
	}
}

// TestSlots: devices that can be unplugged have slots of their own, and some slots are free. A
// machine that takes over from another has its devices in the same slots.
func TestSlots(t *testing.T) {
	m := &Machine{Node: someNode(), Boot: someBoot}
	m.Node.NICs = append(m.Node.NICs, m.Node.NICs[0], m.Node.NICs[0], m.Node.NICs[0])
	m.Node.NICs[2].Network, m.Node.NICs[3].Network, m.Node.NICs[4].Network = "c", "d", "e"
	if s := m.Slots.forNode(m.Node); s.Number != 16 || s.bus("card-e") != ",bus=slot4" || s.bus("nothing") != "" {
		t.Error(s, s.bus("card-e"), s.bus("nothing"))
	}
	m.Slots = Slots{Number: 8, Taken: map[string]int{"card-lan": 2, "card-d": 0}}
	if s := m.Slots.forNode(m.Node); s.Number != 8 ||
		!maps.Equal(s.Taken, map[string]int{"card-d": 0, "card-fast": 1, "card-lan": 2, "card-c": 3, "card-e": 4}) {
		t.Error(s)
	}
	m.Node.VM.Model = site.E1000 // does not support PCI Express
	if got := m.Slots.forNode(m.Node).bus("card-lan"); got != "" {
		t.Error(got)
	}
}

// TestKernelLine: the command line has the guest's configuration, but not its interfaces, because
// those change and the line does not.
func TestKernelLine(t *testing.T) {
	line, err := (&Machine{Node: someNode(), Boot: someBoot}).kernel()
	if err != nil {
		t.Fatal(err)
	}
	c, err := boot.Decode(line[5])
	if err != nil || c.Root != boot.VirtioFS || c.Hostname != "db" || !c.Told || len(c.NICs) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}
