package lxc

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/image"
	"orrery/internal/image/rootfs"
)

// writeConfig writes the LXC configuration of a node that is about to start.
func (s start) writeConfig() error {
	r := s.r
	var b strings.Builder
	set := func(key, format string, args ...any) { fmt.Fprintf(&b, key+" = "+format+"\n", args...) }
	// Include LXC's common profile: seccomp, capabilities, devices, mixed mounts of proc, sys and
	// cgroup.
	set("lxc.include", "/usr/share/lxc/config/common.conf")
	// The common profile includes hooks of the package lxcfs. One mounts by a shell script what lxcfsMounts returns,
	// and the other makes each stop wait for half a second.
	set("lxc.hook.mount", "")
	set("lxc.hook.post-stop", "")
	if idmap := r.IDs(); idmap.Size > 0 {
		set("lxc.include", "/usr/share/lxc/config/userns.conf")
		set("lxc.idmap", "u 0 %d %d", idmap.First, idmap.Size)
		set("lxc.idmap", "g 0 %d %d", idmap.First, idmap.Size)
		set("lxc.namespace.share.user", "%s", s.namespaceFile())
	}
	set("lxc.seccomp.profile", "") // package seccomp sets the filter on the thread that starts LXC
	b.WriteString(rootfs.DeviceRules(append(slices.Clone(deviceRules(r)), rulesOf(s.lent)...)))
	set("lxc.uts.name", "%s", r.Name)
	set("lxc.rootfs.path", "dir:%s", s.Root())
	set("lxc.signal.halt", "SIGRTMIN+3") // systemd(1): poweroff
	set("lxc.pty.max", "1024")
	if err := s.recordConsole(set); err != nil {
		return err
	}
	if host.HasAppArmor() {
		set("lxc.apparmor.profile", "generated")
		// Systemd mounts a proc of its own for the services that it confines.
		set("lxc.apparmor.allow_nesting", "1")
	} else {
		set("lxc.apparmor.profile", "unconfined")
	}
	set("lxc.cgroup.dir.container", "%s", s.group().Name())
	set("lxc.cgroup.dir.monitor", "%s.monitor", s.group().Name())
	set("lxc.cgroup.dir.monitor.pivot", "%s.pivot", s.group().Name())
	for _, f := range cgroup.LimitFiles(r.Limits) {
		version := "cgroup2"
		if f.V1 {
			version = "cgroup"
		}
		set("lxc."+version+"."+f.Name, "%s", f.Value)
	}
	if err := s.links.write(set); err != nil {
		return err
	}
	for _, entry := range lxcfsMounts() {
		set("lxc.mount.entry", "%s", entry)
	}
	for i, f := range filesOf(s.lent) {
		set("lxc.mount.entry", "%s %s none bind,create=file 0 0", s.deviceFile(i), strings.TrimPrefix(f.Path, "/"))
	}
	// Volumes are in a separate file, because Remount changes it and LXC reads it again when the
	// node reboots.
	set("lxc.mount.fstab", "%s", s.fstab())
	if err := writeFstab(s.fstab(), s.mounts); err != nil {
		return err
	}
	return os.WriteFile(s.config(), []byte(b.String()), 0o600)
}

// deviceRules returns the rules of devices that a node may use. A privileged node may use FUSE to mount
// file systems of its own.
func deviceRules(r *nodedir.Record) []string {
	if r.Privileged {
		return append(slices.Clone(rootfs.Devices), "c 10:229 rwm")
	}
	return rootfs.Devices
}

// overlay returns the root file system of a node, including the mounts of host directories.
func (c container) overlay(store *image.Store, r *nodedir.Record, mounts []nodedir.Mount) *rootfs.Overlay {
	o := c.Overlay(store, r)
	for _, m := range mounts {
		o.Binds = append(o.Binds, m.Outside())
	}
	if o.IDs.Size > 0 {
		o.Namespace = c.namespaceFile()
	}
	return o
}
