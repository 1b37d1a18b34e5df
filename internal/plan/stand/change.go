package stand

import (
	"cmp"
	"fmt"
	"slices"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Outdated says why Up would do something to a node that runs and is configured, apart from what
// depends on where its links are and on whether it is live; "": it is as it is declared.
func Outdated(was, is *spec.Node) string {
	if why := cmp.Or(LayerChange(was, is), ShapeChange(was, is, spec.Linked)); why != "" {
		return why
	}
	switch {
	case was.Autostart != is.Autostart:
		return "autostart changed"
	case !slices.Equal(was.Config.Services, is.Config.Services):
		return "services changed"
	case was.Config.Health != is.Config.Health:
		return "health checks changed"
	}
	return cmp.Or(LimitsChange(was.Limits, is.Limits), spec.Differences(was.Config.Parts, is.Config.Parts))
}

// LayerChange says why a node needs a new private layer.
func LayerChange(was, is *spec.Node) string {
	switch {
	case was.Base != is.Base:
		return "base image changed"
	case was.VM.Disk != is.VM.Disk:
		return "private disk changed"
	case was.Disk != is.Disk:
		return "use of the disk image changed"
	case was.Kernel != is.Kernel:
		return "kernel changed"
	case was.Layer == is.Layer:
		return ""
	}
	if why := spec.Differences(was.Parts, is.Parts); why != "" {
		return "role layer changed: " + why
	}
	return "role layer changed"
}

// DiskChange refuses to make a disk smaller of a node whose private layer stays: its engine would
// refuse it too, but only when the node has been stopped.
func DiskChange(was, is *spec.Node) error {
	if LayerChange(was, is) != "" {
		return nil // its disks are made anew
	}
	d, had, found := was.VM.Smaller(is.VM)
	if !found {
		return nil
	}
	what, cure := d.NoSmaller(is.Name, had)
	return problem.New(problem.Mistake, "%s", what).At("site.toml").Try("%s", cure)
}

// ShapeChange says why a node must be stopped to be changed. Of its interfaces, linked gives what is compared.
func ShapeChange(was, is *spec.Node, linked func(*spec.Node) []spec.NIC) string {
	switch {
	case was.Privileged != is.Privileged:
		return "privileges changed"
	case !slices.Equal(was.Syscalls, is.Syscalls):
		return "system calls that it may use changed"
	case !slices.Equal(linked(was), linked(is)):
		return "network interfaces changed"
	case !slices.Equal(was.Mounts, is.Mounts):
		return "volumes changed"
	case spec.Digest(was.VM) != spec.Digest(is.VM):
		return "virtual hardware changed"
	case was.Xen != is.Xen:
		return "type of the guest of Xen changed"
	case was.MachineID != is.MachineID:
		return "machine-id changed"
	}
	return ""
}

// LimitsChange says which limits of a node differ; "": none do.
func LimitsChange(was, is site.Limits) string {
	if site.SamePin(was.Pin, is.Pin) {
		was.Pin = is.Pin
	}
	return spec.Differences(limitParts(was), limitParts(is))
}

func limitParts(l site.Limits) spec.Parts {
	p := spec.Parts{
		"cpus": fmt.Sprint(l.Cpus), "pin": l.Pin, "memory": fmt.Sprint(l.Memory), "pids": fmt.Sprint(l.Pids), "swap": "",
	}
	if l.Swap != nil {
		p["swap"] = fmt.Sprint(*l.Swap)
	}
	return p
}
