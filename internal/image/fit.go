package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A fitting is a file that makes a system fit for being a node. Changing any of them needs a new version: constant fit in
// package spec.
type fitting struct {
	path string
	text string // content; for a link: where it points
	link bool
}

// fittings are put into every base image.
var fittings = []fitting{
	// Each node gets its own of these. An empty machine-id, unlike a missing one, does not make the boot a first boot.
	{path: "/etc/machine-id"},
	{path: "/etc/resolv.conf"},
	{path: "/etc/hostname"},
	// Names of all nodes, in a directory that the host shares with them: they change without anything being done on the nodes.
	{path: "/etc/hosts", text: "orrery/hosts", link: true},
	// Text is UTF-8 everywhere, without the locales package.
	{path: "/etc/default/locale", text: "LANG=C.UTF-8\n"},
	{path: "/etc/locale.conf", text: "LANG=C.UTF-8\n"},
	{path: "/etc/apt/apt.conf.d/90orrery", text: `APT::Install-Recommends "0";
APT::Install-Suggests "0";
Acquire::Languages "none";
`},
	{path: "/etc/dpkg/dpkg.cfg.d/90orrery", text: strings.Join(excludes, "\n") + "\n"},

	// The journal preallocates 8 MiB for each of its files by default: more than all else that a node writes.
	{path: "/etc/systemd/journald.conf.d/orrery.conf", text: `[Journal]
SystemMaxFileSize=512K
SystemMaxFiles=100
RuntimeMaxFileSize=512K
Audit=no
ReadKMsg=no
`},
	// The boot's goal is what services are for; there is no screen.
	{path: "/etc/systemd/system/default.target", text: "/lib/systemd/system/multi-user.target", link: true},
	// sshd checks its configuration as it starts; a run before that only to check it doubles the time.
	{path: "/etc/systemd/system/ssh.service.d/orrery.conf", text: "[Service]\nExecStartPre=\n"},
}

// notInContainers are units that systemd is not to start in a container, which has the host's kernel, devices and clock: there
// they fail or waste time. In a virtual machine made of the same image they start.
var notInContainers = []string{
	// Kernel file systems that belong to the host.
	"sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount", "sys-fs-fuse-connections.mount",
	"dev-hugepages.mount", "dev-mqueue.mount", "proc-sys-fs-binfmt_misc.automount", "systemd-binfmt.service",
	// Kernel modules, devices and firmware.
	"systemd-modules-load.service", "modprobe@.service", "kmod-static-nodes.service", "systemd-hwdb-update.service",
	"systemd-udevd.service", "systemd-udev-trigger.service", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket",
	"systemd-tmpfiles-setup-dev.service", "systemd-tmpfiles-setup-dev-early.service",
	"systemd-pcrphase-sysinit.service", "systemd-pcrphase.service", "systemd-pstore.service", "systemd-network-generator.service",
	// Disks, random numbers, audit: the host's.
	"systemd-remount-fs.service", "systemd-random-seed.service", "systemd-journald-audit.socket", "e2scrub_reap.service",
	// Terminals: a container has its console.
	"getty-static.service", "getty@.service", "serial-getty@.service",
	"systemd-ask-password-console.path", "systemd-ask-password-wall.path",
}

// masked are units that no node is to have.
var masked = []string{
	// What a machine that is administered by hand does daily: on 64 nodes it would wake at once, and nodes are renewed by a new
	// layer, not by an upgrade.
	"apt-daily.timer", "apt-daily-upgrade.timer", "apt-daily.service", "apt-daily-upgrade.service",
	"e2scrub_all.timer", "man-db.timer", "dpkg-db-backup.timer", "fstrim.timer",
	// What the image builder has done already, for all nodes.
	"systemd-sysusers.service", "systemd-firstboot.service", "ldconfig.service", "systemd-journal-catalog-update.service",
	"systemd-update-done.service",
	// utmp's record of boots, which nobody reads.
	"systemd-update-utmp.service", "systemd-update-utmp-runlevel.service",
	// sshd runs as ssh.service from the start, and so tells when it is ready.
	"ssh.socket",
}

// onDemand are services that systemd starts when something asks for them over D-Bus. To start them at every boot takes a sixth of
// it, and few nodes ever ask.
var onDemand = []string{"dbus.service", "systemd-logind.service"}

// noGenerators are programs that systemd runs at the beginning of every boot to look for what a node never has: encrypted,
// verified or unnamed disks, a suspended image, a kernel command line of its own. They are a fifth of the work of a boot.
var noGenerators = []string{
	"bless-boot", "cryptsetup", "debug", "gpt-auto", "hibernate-resume", "integritysetup", "rc-local", "run", "system-update",
	"ssh", "tpm2", "veritysetup",
}

// fit makes a tree fit for being a node; it must be a Linux system with systemd.
func fit(tree string) error {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range fittings {
		if err := f.install(root, tree); err != nil {
			return err
		}
	}
	for _, unit := range notInContainers {
		path := "/etc/systemd/system/" + unit + ".d/orrery.conf"
		if err := put(tree, path, "[Unit]\nConditionVirtualization=!container\n"); err != nil {
			return err
		}
	}
	var absent []string
	for _, unit := range masked {
		absent = append(absent, "system/"+unit)
	}
	for _, unit := range onDemand {
		absent = append(absent, "system/multi-user.target.wants/"+unit)
	}
	for _, name := range noGenerators {
		absent = append(absent, "system-generators/systemd-"+name+"-generator")
	}
	for _, path := range absent {
		if err := (fitting{path: "/etc/systemd/" + path, text: "/dev/null", link: true}).install(root, tree); err != nil {
			return err
		}
	}
	if err := root.MkdirAll("etc/orrery", 0o755); err != nil { // where the host puts what it tells its nodes
		return err
	}
	if err := fitSSH(root, tree); err != nil {
		return err
	}
	// How the image was made is not how the node is to fetch packages, nor how it is to start services.
	return clear(root, policy.Path[1:], "etc/apt/apt.conf.d/99mmdebstrap", "etc/dpkg/dpkg.cfg.d/99mmdebstrap", "var/lib/dbus/machine-id", ".dockerenv")
}

// fitSSH has the node's own key, which it gets from the host, and none else: making keys takes longer than the whole boot.
func fitSSH(root *os.Root, tree string) error {
	keys, err := filepath.Glob(filepath.Join(tree, "etc/ssh/ssh_host_*"))
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := clear(root, "etc/ssh/"+filepath.Base(key)); err != nil {
			return err
		}
	}
	if _, err := root.Stat("usr/sbin/sshd"); err != nil {
		return nil // an imported image without it: the engine reaches the node all the same
	}
	if err := put(tree, "/etc/ssh/sshd_config.d/orrery.conf", "HostKey /etc/ssh/ssh_host_ed25519_key\nUseDNS no\n"); err != nil {
		return err
	}
	return fitting{
		path: "/etc/systemd/system/multi-user.target.wants/ssh.service", text: "/lib/systemd/system/ssh.service", link: true,
	}.install(root, tree)
}

func (f fitting) install(root *os.Root, tree string) error {
	if !f.link {
		return put(tree, f.path, f.text)
	}
	name := strings.TrimPrefix(f.path, "/")
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := clear(root, name); err != nil {
		return err
	}
	return root.Symlink(f.text, name)
}

// clear removes files of a tree, if they are there.
func clear(root *os.Root, names ...string) error {
	for _, name := range names {
		if err := root.RemoveAll(name); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}
