package kvm

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"orrery/internal/engine/confine"
	"orrery/internal/guest/boot"
	"orrery/internal/image/kernel"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/wire"
)

// A handed file is one that QEMU finds open: as the first of them, its number is 3.
const firstHanded = 3

// handed are the numbers of the files that QEMU is handed, as it is told.
type handed struct {
	log, console, share, monitor int

	agents []int
	taps   [][]int // by interface, one for each of its queues
}

// hand numbers the files in the order in which they are handed.
func hand(taps []int) handed {
	next := firstHanded
	take := func() int { next++; return next - 1 }
	h := handed{log: take(), console: take(), share: take(), monitor: take()}
	for range wire.Ports {
		h.agents = append(h.agents, take())
	}
	for _, queues := range taps {
		var all []int
		for range queues {
			all = append(all, take())
		}
		h.taps = append(h.taps, all)
	}
	return h
}

// command is QEMU's command line for a node (qemu-system-x86_64(1)).
func command(n *spec.Node, from *kernel.Boot, accel string, h handed) ([]string, error) {
	line, err := kernelLine(n)
	if err != nil {
		return nil, err
	}
	memory := strconv.FormatInt(memoryOf(n)>>10, 10) + "K"
	args := []string{
		"-name", "guest=" + n.Site + "/" + n.Name, "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none",
		"-sandbox", confine.Sandbox,
		"-machine", "q35,memory-backend=memory,usb=off,vmport=off", "-accel", accelerator(accel), "-cpu", processor(n, accel),
		"-smp", strconv.Itoa(n.Limits.VCPUs()), "-m", memory, "-object", "memory-backend-memfd,id=memory,share=on,size=" + memory,
		"-kernel", from.Kernel, "-initrd", from.Initramfs, "-append", line,
		"-add-fd", fmt.Sprintf("fd=%d,set=1", h.log), "-chardev", listening("console", h.console) + ",logfile=/dev/fdset/1,logappend=on", "-serial", "chardev:console",
		"-chardev", listening("monitor", h.monitor), "-mon", "chardev=monitor,mode=control",
		"-chardev", fmt.Sprintf("socket,id=share,fd=%d", h.share), "-device", "vhost-user-fs-pci,chardev=share,tag=" + boot.RootTag + ",queue-size=256",
		"-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
	}
	for i, fd := range h.agents {
		id := "agent" + strconv.Itoa(i)
		args = append(args, "-chardev", listening(id, fd), "-device", fmt.Sprintf("virtserialport,chardev=%s,name=%s.%d", id, wire.PortName, i))
	}
	for i, nic := range n.NICs {
		args = append(args, card(n, i, nic, h.taps[i])...)
	}
	return args, nil
}

// listening is a socket that QEMU is handed listening. Nobody is waited for.
func listening(id string, fd int) string {
	return fmt.Sprintf("socket,id=%s,fd=%d,server=on,wait=off", id, fd)
}

func accelerator(accel string) string {
	if accel == observe.KVM {
		return "kvm"
	}
	return "tcg,thread=multi,tb-size=64"
}

// processor is the model that the guest sees. In emulation it is the plainest: each extension that libraries find and use is emulated, too, and a guest boots in two
// thirds of the processor time that it takes with all that QEMU can emulate. It lacks cmpxchg16b: Linux 6.12 (Debian 13) takes memory by it, and QEMU 7.2 emulates it
// wrongly now and then, on which every other boot ended with a double fault in kmalloc.
func processor(n *spec.Node, accel string) string {
	switch {
	case n.VM.CPU != "":
		return n.VM.CPU
	case accel == observe.KVM:
		return "host"
	}
	return "qemu64,cx16=off"
}

// card is a network card. It boots nothing, so it needs no ROM.
func card(n *spec.Node, i int, nic spec.NIC, fds []int) []string {
	model := map[string]string{site.Virtio: "virtio-net-pci", site.E1000: "e1000", site.RTL8139: "rtl8139"}[cmp.Or(n.VM.Model, site.Virtio)]
	id := "net" + strconv.Itoa(i)
	return []string{
		"-netdev", fmt.Sprintf("tap,id=%s,fd=%d", id, fds[0]),
		"-device", fmt.Sprintf("%s,netdev=%s,mac=%s,romfile=", model, id, nic.MAC),
	}
}

// memoryOf is the memory of a guest, in bytes: whole MiB, of which each processor has pages.
func memoryOf(n *spec.Node) int64 {
	const whole = 1 << 20
	return (cmp.Or(n.Limits.Memory, int64(site.DefaultVMMemory)) + whole - 1) / whole * whole
}

// kernelLine is the command line of the guest's kernel (kernel-parameters.txt), with what orrery-guest is to know.
func kernelLine(n *spec.Node) (string, error) {
	config := boot.Config{Root: boot.VirtioFS, Hostname: n.Name}
	for _, nic := range n.NICs {
		config.NICs = append(config.NICs, boot.NIC{MAC: nic.MAC, Name: nic.Name, Address: nic.Address, Gateway: nic.Gateway, MTU: nic.MTU})
	}
	word, err := config.Encode()
	if err != nil {
		return "", err
	}
	// A kernel that panics begins anew. Names of cards are given by orrery-guest. Nobody logs in at a console, and there is no screen.
	return strings.Join([]string{"console=ttyS0", "quiet", "panic=10", "net.ifnames=0", "systemd.getty_auto=no", "systemd.mask=getty@tty1.service", word}, " "), nil
}
