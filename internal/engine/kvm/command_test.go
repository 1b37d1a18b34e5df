package kvm

import (
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
	"orrery/internal/wire"
)

func someNode() *spec.Node {
	return &spec.Node{
		Site: "karoo", Name: "db", ID: 101, Engine: Name, Kernel: "abc", Limits: site.Limits{Cpus: 1.5, Memory: 256 << 20},
		NICs: []spec.NIC{
			{Name: "eth0", HostEnd: "orv1", MAC: "02:00:00:00:00:01", Address: "10.1.0.2/24", Gateway: "10.1.0.1", MTU: 1500},
			{Name: "eth1", HostEnd: "orv2", MAC: "02:00:00:00:00:02", Address: "10.2.0.2/24", MTU: 9000},
		},
	}
}

var someBoot = &kernel.Boot{Kernel: "/store/abc/vmlinux", Initramfs: "/store/abc/initramfs"}

// TestCommand: the whole command line of a machine. What is changed here changes what guests see.
func TestCommand(t *testing.T) {
	args, err := command(someNode(), someBoot, observe.TCG, hand([]int{1, 1}))
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("testdata/command")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(args, "\n") + "\n"; got != string(golden) {
		t.Errorf("got\n%s", got)
	}
}

// TestCommandOf: what the site file and the host decide.
func TestCommandOf(t *testing.T) {
	has := func(n *spec.Node, accel string, want ...string) {
		t.Helper()
		args, err := command(n, someBoot, accel, hand([]int{1, 1}))
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
	has(n, observe.KVM, "-accel", "kvm")
	has(n, observe.KVM, "-cpu", "host")
	has(n, observe.TCG, "-cpu", "qemu64,cx16=off")
	n.VM = site.VM{CPU: "Nehalem", Model: site.E1000}
	has(n, observe.KVM, "-cpu", "Nehalem")
	has(n, observe.TCG, "-device", "e1000,netdev=net0,mac=02:00:00:00:00:01,romfile=")
	n.Limits = site.Limits{}
	has(n, observe.TCG, "-smp", "1")
	has(n, observe.TCG, "-m", "524288K")
}

// TestCommandTooMuch: what does not go onto the kernel's command line is an error, and not cut off.
func TestCommandTooMuch(t *testing.T) {
	n := someNode()
	for range 20 {
		n.NICs = append(n.NICs, n.NICs[0])
	}
	if _, err := command(n, someBoot, observe.TCG, hand(make([]int, len(n.NICs)))); problem.Exit(err) != int(problem.Mistake) {
		t.Error(err)
	}
}

// TestHand: each file has a number of its own, from the first on, in the order in which machine.hand opens them.
func TestHand(t *testing.T) {
	h := hand([]int{2, 1})
	all := append([]int{h.log, h.console, h.share, h.monitor}, h.agents...)
	for _, queues := range h.taps {
		all = append(all, queues...)
	}
	for i, fd := range all {
		if fd != firstHanded+i {
			t.Errorf("file %d has the number %d", i, fd)
		}
	}
	if len(h.agents) != wire.Ports || len(h.taps) != 2 || len(h.taps[0]) != 2 {
		t.Errorf("%+v", h)
	}
}

// TestKernelLine: the guest is told what it is to know.
func TestKernelLine(t *testing.T) {
	line, err := kernelLine(someNode())
	if err != nil {
		t.Fatal(err)
	}
	c, err := boot.Decode(line)
	if err != nil || c.Root != boot.VirtioFS || c.Hostname != "db" || len(c.NICs) != 2 || c.NICs[1] != (boot.NIC{MAC: "02:00:00:00:00:02", Name: "eth1", Address: "10.2.0.2/24", MTU: 9000}) {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestSharing: the two virtiofsd take their options in different words. A comma in a path is no end of an option.
func TestSharing(t *testing.T) {
	in := strings.Join(sharing("7.2.22", "/a,b"), " ")
	if !strings.Contains(in, `source=/a\,b`) || !strings.Contains(in, "sandbox=namespace") || !strings.Contains(in, "--fd=3") {
		t.Error(in)
	}
	in = strings.Join(sharing("1.13.2", "/a,b"), " ")
	if !strings.Contains(in, "--shared-dir=/a,b") || !strings.Contains(in, "--sandbox=namespace") || !strings.Contains(in, "--fd=3") {
		t.Error(in)
	}
}

// TestDrives: a card for which the guest's kernel has no driver is told before the machine starts.
func TestDrives(t *testing.T) {
	n := someNode()
	must(t, drives(n, someBoot))
	n.VM.Model = site.RTL8139
	if err := drives(n, someBoot); problem.Exit(err) != int(problem.Unable) || !strings.Contains(err.Error(), "8139cp") {
		t.Error(err)
	}
	must(t, drives(n, &kernel.Boot{Modules: []string{"8139cp"}}))
	n.NICs = nil
	must(t, drives(n, someBoot))
}
