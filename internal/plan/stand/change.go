package stand

import (
	"cmp"
	"fmt"
	"slices"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// UpdateReason returns why Up would change a running, configured node, or "" if the node is as
// declared. It ignores the bridges of links and whether the node is live.
func UpdateReason(old, wanted *spec.Node) string {
	if why := cmp.Or(LayerChange(old, wanted), ShapeChange(old, wanted, spec.WithoutBridges)); why != "" {
		return why
	}
	switch {
	case old.Autostart != wanted.Autostart:
		return "autostart changed"
	case !slices.Equal(old.Config.Services, wanted.Config.Services):
		return "services changed"
	case old.Config.Health != wanted.Config.Health:
		return "health checks changed"
	}
	return cmp.Or(LimitsChange(old.Limits, wanted.Limits), TrafficChange(old, wanted),
		spec.DescribeChanges(old.Config.Parts, wanted.Config.Parts))
}

// Loss is what users lose when a node gets a new private layer or is destroyed.
const Loss = "everything outside volumes is lost"

// LayerChange returns why a node needs a new private layer, or "" if it does not.
func LayerChange(old, wanted *spec.Node) string {
	switch {
	case old.Base != wanted.Base:
		return "base image changed"
	case old.VM.Disk != wanted.VM.Disk:
		return "private disk changed"
	case old.Disk != wanted.Disk:
		return "use of the disk image changed"
	case old.Kernel != wanted.Kernel:
		return "kernel changed"
	case old.Layer == wanted.Layer:
		return ""
	}
	if why := spec.DescribeChanges(old.Parts, wanted.Parts); why != "" {
		return "role layer changed: " + why
	}
	return "role layer changed"
}

// DiskChange returns an error if a disk of a node would shrink although its private layer stays.
// The engine would also refuse this, but only after the node has been stopped.
func DiskChange(old, wanted *spec.Node) error {
	if LayerChange(old, wanted) != "" {
		return nil // its disks are recreated
	}
	d, oldSize, found := old.VM.ShrunkDisk(wanted.VM)
	if !found {
		return nil
	}
	what, cure := d.ShrinkError(wanted.Name, oldSize)
	return problem.New(problem.Mistake, "%s", what).At("site.toml").Try("%s", cure)
}

// ShapeChange returns why a node must be stopped to be changed, or "" if it need not. linked
// returns the interfaces to compare.
func ShapeChange(old, wanted *spec.Node, linked func(*spec.Node) []spec.NIC) string {
	switch {
	case old.Privileged != wanted.Privileged:
		return "privileges changed"
	case !slices.Equal(old.Syscalls, wanted.Syscalls):
		return "allowed system calls changed"
	case !slices.Equal(old.Devices, wanted.Devices):
		return "devices changed"
	case !sameNICs(linked(old), linked(wanted)):
		return "network interfaces changed"
	case !slices.Equal(old.Mounts, wanted.Mounts):
		return "volumes changed"
	case spec.Digest(old.VM) != spec.Digest(wanted.VM):
		return "virtual hardware changed"
	case old.Xen != wanted.Xen:
		return "Xen guest type changed"
	case old.MachineID != wanted.MachineID:
		return "machine-id changed"
	}
	return ""
}

// sameNICs reports whether two nodes have the same interfaces. A declaration that no plan has placed
// leaves open which virtual function the node has.
func sameNICs(old, wanted []spec.NIC) bool {
	return slices.EqualFunc(old, wanted, func(a, b spec.NIC) bool {
		if site.KindOf(b.Kind).VirtualFunctions && b.Parent == "" {
			b.Parent = a.Parent
		}
		return a == b
	})
}

// LimitsChange returns which limits of a node differ, or "" if none do.
func LimitsChange(old, wanted site.Limits) string {
	if site.SameProcessors(old.Pin, wanted.Pin) {
		old.Pin = wanted.Pin
	}
	return spec.DescribeChanges(limitParts(old), limitParts(wanted))
}

// TrafficChange returns on which networks that a node stays on its limits of traffic differ, or "" if they
// do on none.
func TrafficChange(old, wanted *spec.Node) string {
	limits := func(n, other *spec.Node) spec.PartDigests {
		p := spec.PartDigests{}
		for _, nic := range n.NICs {
			on := func(o spec.NIC) bool { return o.Network == nic.Network }
			if text := nic.Traffic.String(); text != "" && slices.ContainsFunc(other.NICs, on) {
				p["traffic on network "+nic.Network] = text
			}
		}
		return p
	}
	return spec.DescribeChanges(limits(old, wanted), limits(wanted, old))
}

func limitParts(l site.Limits) spec.PartDigests {
	p := spec.PartDigests{
		"cpus": fmt.Sprint(l.Cpus), "pin": l.Pin, "memory": fmt.Sprint(l.Memory), "pids": fmt.Sprint(l.Pids), "swap": "",
		"disk": l.Disk.String(),
	}
	if l.Swap != nil {
		p["swap"] = fmt.Sprint(*l.Swap)
	}
	return p
}
