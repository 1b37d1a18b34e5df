package check

import (
	"slices"

	"orrery/internal/site"
	"orrery/internal/text/pattern"
)

// Limits of a virtual machine.
const (
	maxVCPUs = 255 // more need an interrupt controller that not every guest supports
	maxNICs  = 8   // each is passed to the guest on its kernel command line, which has 2 KiB
)

// cpuModel matches the name of a processor model in QEMU: "max", "host", "qemu64",
// "Skylake-Server-v4".
var cpuModel = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// checkMachine checks settings that are only for containers, or only for virtual machines.
func checkMachine(ix *index, found *findings, taken holders, n *site.Node) {
	checkXen(found, n)
	checkSyscalls(found, n)
	if !n.Virtual() {
		if !n.VM.IsZero() {
			found.report(atNode(n, "vm"), `write engine = "kvm", or remove it`,
				"node %s is not a virtual machine but has settings of one", n.Name)
		}
		return
	}
	if n.VM.CPU != "" && !cpuModel().MatchString(n.VM.CPU) {
		found.report(atNode(n, "vm", "cpu"), "such as \"max\"; `qemu-system-x86_64 -cpu help` lists them",
			"cpu = %q is not a processor model", n.VM.CPU)
	}
	if n.VM.Model != "" && !slices.Contains(site.NICModels, n.VM.Model) {
		found.report(atNode(n, "vm", "model"), "use "+sentence(site.NICModels),
			"model = %q is not a network card of a virtual machine", n.VM.Model)
	}
	if n.Privileged {
		found.report(atNode(n, "privileged"), "remove it",
			"node %s is a virtual machine, where privileged has no effect", n.Name)
	}
	checkMachineLimits(found, n)
	checkMachineLinks(ix, found, n)
	checkDevices(ix, found, taken, n)
	checkDrives(ix, found, taken, n)
}

// checkSyscalls checks the system calls that a container requests.
func checkSyscalls(found *findings, n *site.Node) {
	if n.Virtual() && len(n.Syscalls) > 0 {
		found.report(atNode(n, "syscalls"), "remove it",
			"node %s is a virtual machine, whose own kernel allows all system calls", n.Name)
		return
	}
	for i, name := range n.Syscalls {
		if !slices.Contains(site.NodeSyscalls, name) {
			found.report(atNode(n, "syscalls"), "use "+sentence(site.NodeSyscalls),
				"syscalls has %q, which cannot be allowed", name)
		} else if i > 0 && n.Syscalls[i-1] == name {
			found.report(atNode(n, "syscalls"), "remove one", "syscalls has %q twice", name)
		}
	}
}

// checkMachineLimits checks the resource limits of a virtual machine: the processors and the memory
// that it shows to its guest.
func checkMachineLimits(found *findings, n *site.Node) {
	const inside = "remove it: the guest's own kernel decides"
	l := &n.Limits
	if l.Swap != nil && *l.Swap >= 0 {
		found.report(atNode(n, "swap"), inside, "node %s is a virtual machine and cannot have a swap limit", n.Name)
	}
	if l.Pids != 0 {
		found.report(atNode(n, "pids"), inside, "node %s is a virtual machine and cannot have a process limit", n.Name)
	}
	switch {
	case l.Memory == 0:
		found.report(atNode(n, "memory"), `such as "512MiB"`,
			"node %s is a virtual machine and needs a memory limit", n.Name)
	case l.Memory >= minMemory && l.Memory < site.MinVMMemory:
		found.report(atNode(n, "memory"), "at least 128MiB",
			"memory = %d bytes is too little to boot a virtual machine", l.Memory)
	}
	if validCPUs(l.Cpus) && l.Cpus > maxVCPUs {
		found.report(atNode(n, "cpus"), "at most 255", "cpus = %v is too many for a virtual machine", l.Cpus)
	}
}

// checkMachineLinks checks that a virtual machine is only on networks where the host has an end of
// each link.
func checkMachineLinks(ix *index, found *findings, n *site.Node) {
	for _, nic := range n.NICs {
		if kind := ix.kindByName[nic.Network]; kind.Wired() {
			found.report(atNode(n, "net", nic.Network), `put it on a bridge or a routed network, or write engine = "lxc"`,
				"node %s is a virtual machine and cannot be on %s network %s", n.Name, kind.Name, nic.Network)
		}
	}
	if len(n.NICs) > maxNICs {
		found.report(atNode(n, "net"), "remove some", "node %s is a virtual machine on %d networks; the maximum is %d",
			n.Name, len(n.NICs), maxNICs)
	}
}
