// Package argv writes QEMU's command line for a node (qemu-system-x86_64(1)). Each file writes a
// group of devices. The package opens nothing. A device requests each open file that QEMU needs by
// name, and gets the number under which QEMU will find it.
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

// A Machine describes the machine that QEMU must run.
type Machine struct {
	Node  *spec.Node
	Boot  *kernel.Boot // nil if the machine boots a foreign disk
	Disk  Disk
	Accel string // observe.KVM or observe.TCG
	Slots Slots
	VHost bool     // the host's kernel can serve network cards
	PCI   []string // directories of the lent PCI functions in /sys/devices

	Type     string // machine type of the machine to take over from, such as "pc-q35-8.2", or "" for QEMU's default
	Incoming bool   // it takes over the state of another machine

	// SparesKicks is set if the guest does not notify virtiofsd of each request, as in a machine
	// started by an earlier version.
	SparesKicks bool
}

// CommandLine returns the command line and the files that it refers to.
func (m *Machine) CommandLine() ([]string, *Files, error) {
	files := &Files{}
	slots := m.Slots.forNode(m.Node)
	if m.Node.Imported() {
		return m.imported(files, slots), files, nil
	}
	kernel, err := m.kernel()
	if err != nil {
		return nil, nil, err
	}
	rest := slices.Concat(serial(files), monitor(files), slots.ports(), m.root(files), agent(files),
		m.cards(files, slots), pciFunctions(m.PCI))
	drives, err := m.drives(files, slots)
	if err != nil {
		return nil, nil, err
	}
	return slices.Concat(m.machineArgs(), m.memory(), kernel, rest, drives, m.incoming()), files, nil
}

// machineArgs returns the machine without any devices.
func (m *Machine) machineArgs() []string {
	return []string{
		"-name", "guest=" + m.Node.Site + "/" + m.Node.Name, "-nodefaults", "-no-user-config", "-display", "none",
		"-monitor", "none",
		// a guest whose kernel panics is stopped
		"-sandbox", confine.QEMUSandboxOption, "-device", "pvpanic", "-action", "panic=pause",
		"-machine", cmp.Or(m.Type, "q35") + ",memory-backend=memory,usb=off,vmport=off", "-accel", m.accelerator(), "-cpu",
		m.processor(),
		"-smp", m.processors(),
	}
}

// processors returns the number of processors of the guest. An emulator with room for only one
// processor translates the guest's barriers and atomic operations as if no other program saw its
// memory. But virtiofsd does. Without barriers, the guest may miss that a request is done, and wait
// for ever. So the emulator gets room for a second processor, which the guest does not get.
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

// processor returns the processor model that the guest sees. In emulation it is the plainest model,
// because each extension that libraries find and use must be emulated, too. A guest boots with two
// thirds of the processor time that it needs with all extensions that QEMU can emulate. The model
// lacks cmpxchg16b. Linux 6.12 (Debian 13) allocates memory with it, and QEMU 7.2 sometimes
// emulates it wrongly, so that every other boot ended with a double fault in kmalloc.
func (m *Machine) processor() string {
	switch {
	case m.Node.VM.CPU != "":
		return m.Node.VM.CPU
	case m.Accel == observe.KVM:
		return "host"
	}
	return "qemu64,cx16=off"
}

// kernel returns the kernel and initramfs of the machine, and the command line of the guest's
// kernel (kernel-parameters.txt) with the configuration for orrery-guest.
func (m *Machine) kernel() ([]string, error) {
	// The command line stays the same when the guest reboots, but interfaces come and go. So the
	// guest reads them from a file.
	config := boot.Config{Root: boot.VirtioFS, Hostname: m.Node.Name, Told: true}
	if m.Node.VM.Disk != "" {
		config.Disk = site.RootDisk
	}
	word, err := config.Encode()
	if err != nil {
		return nil, err
	}
	// A kernel that panics before it has the driver of pvpanic reboots. Orrery-guest names the
	// cards and starts the shell on the console. There is no login on the console, even if systemd
	// cannot continue, and no screen.
	line := []string{
		"console=ttyS0", "quiet", "panic=10", "net.ifnames=0", "systemd.getty_auto=no", "systemd.mask=getty@tty1.service",
		"systemd.setenv=SYSTEMD_SULOGIN_FORCE=1",
	}
	if m.Accel != observe.KVM {
		// A kernel that sees no timer tick within a moment panics (check_timer in io_apic.c), which
		// can happen on a busy host. On KVM, the kernel does not check.
		line = append(line, "no_timer_check")
	}
	line = append(line, word)
	return []string{"-kernel", m.Boot.Kernel, "-initrd", m.Boot.Initramfs, "-append", strings.Join(line, " ")}, nil
}

// listeningSocket returns a listening socket that QEMU receives. QEMU does not wait for a client.
func listeningSocket(id string, fd int) string {
	return fmt.Sprintf("socket,id=%s,fd=%d,server=on,wait=off", id, fd)
}
