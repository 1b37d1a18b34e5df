// Package argv writes QEMU's command line for a node (qemu-system-x86_64(1)): a file for each group
// of devices. It opens nothing. What QEMU is to find open, a device asks for by name, and gets the
// number under which QEMU finds it.
package argv

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/engine/confine"
	"orrery/internal/guest/boot"
	"orrery/internal/image/kernel"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Machine is what QEMU is to be.
type Machine struct {
	Node  *spec.Node
	Boot  *kernel.Boot // nil: it boots a disk
	Disk  Disk
	Accel string // observe.KVM or observe.TCG
	Slots Slots
	VHost bool     // the host's kernel can serve network cards
	PCI   []string // where the kernel tells of the functions that the machine is lent, below /sys/devices

	Type     string // of the machine whose place it takes, such as "pc-q35-8.2"; "": whatever QEMU's is
	Incoming bool   // it takes over the state of that one

	SparesKicks bool // its guest does not tell virtiofsd of each request, as one that goes on from an earlier version
}

// Line returns the command line, and the files that it speaks of.
func (m *Machine) Line() ([]string, *Files, error) {
	files := &Files{}
	slots := m.Slots.with(m.Node)
	if m.Node.Imported() {
		return m.imported(files, slots), files, nil
	}
	kernel, err := m.kernel()
	if err != nil {
		return nil, nil, err
	}
	rest := slices.Concat(serial(files), monitor(files), slots.ports(), m.root(files), agent(files),
		m.cards(files, slots), functions(m.PCI))
	drives, err := m.drives(files, slots)
	if err != nil {
		return nil, nil, err
	}
	return slices.Concat(m.itself(), m.memory(), kernel, rest, drives, m.incoming()), files, nil
}

// itself is the machine without any device.
func (m *Machine) itself() []string {
	return []string{
		"-name", "guest=" + m.Node.Site + "/" + m.Node.Name, "-nodefaults", "-no-user-config", "-display", "none",
		"-monitor", "none",
		// a guest whose kernel panics stands still
		"-sandbox", confine.Sandbox, "-device", "pvpanic", "-action", "panic=pause",
		"-machine", cmp.Or(m.Type, "q35") + ",memory-backend=memory,usb=off,vmport=off", "-accel", m.accelerator(), "-cpu",
		m.processor(),
		"-smp", m.processors(),
	}
}

// processors is how many the guest has. An emulator with room for one only translates the guest's
// barriers and atomic operations as if nobody else saw its memory. But virtiofsd does: without
// barriers, the guest may miss that a request is done, and wait forever. So the emulator has room
// for another, which the guest does not get.
func (m *Machine) processors() string {
	n := m.Node.Limits.VCPUs()
	if m.Accel == observe.TCG && n == 1 {
		return "1,maxcpus=2"
	}
	return strconv.Itoa(n)
}

func (m *Machine) accelerator() string {
	if m.Accel == observe.KVM {
		return "kvm"
	}
	return "tcg,thread=multi,tb-size=64"
}

// processor is the model that the guest sees. In emulation it is the plainest: each extension that
// libraries find and use is emulated, too, and a guest boots in two thirds of the processor time
// that it takes with all that QEMU can emulate. It lacks cmpxchg16b: Linux 6.12 (Debian 13) takes
// memory by it, and QEMU 7.2 emulates it wrongly now and then, on which every other boot ended with
// a double fault in kmalloc.
func (m *Machine) processor() string {
	switch {
	case m.Node.VM.CPU != "":
		return m.Node.VM.CPU
	case m.Accel == observe.KVM:
		return "host"
	}
	return "qemu64,cx16=off"
}

// kernel is what the machine boots from, and the command line of the guest's kernel
// (kernel-parameters.txt), with what orrery-guest is to know.
func (m *Machine) kernel() ([]string, error) {
	// a line stays as it is when the guest reboots, and interfaces come and go
	config := boot.Config{Root: boot.VirtioFS, Hostname: m.Node.Name, Told: true}
	if m.Node.VM.Disk != "" {
		config.Disk = site.RootDisk
	}
	word, err := config.Encode()
	if err != nil {
		return nil, err
	}
	// A kernel that panics before it has the driver of pvpanic begins anew. Names of cards are given
	// by orrery-guest, and so is the shell at the console: nobody logs in there, also when systemd
	// cannot go on. There is no screen.
	line := []string{
		"console=ttyS0", "quiet", "panic=10", "net.ifnames=0", "systemd.getty_auto=no", "systemd.mask=getty@tty1.service",
		"systemd.setenv=SYSTEMD_SULOGIN_FORCE=1",
	}
	if m.Accel != observe.KVM {
		// A kernel that sees no tick of its timer within a moment panics (check_timer in io_apic.c), as
		// it may on a busy host. On KVM, it does not check.
		line = append(line, "no_timer_check")
	}
	line = append(line, word)
	return []string{"-kernel", m.Boot.Kernel, "-initrd", m.Boot.Initramfs, "-append", strings.Join(line, " ")}, nil
}

// listening is a socket that QEMU is handed listening. Nobody is waited for.
func listening(id string, fd int) string {
	return fmt.Sprintf("socket,id=%s,fd=%d,server=on,wait=off", id, fd)
}
