package rehearsal

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// mountRoot mounts the host's root: the machine's with what the host has written above it, which is
// on its disk.
func (b birth) mountRoot() error {
	disk, root := diskOf(b.Number), rootOf(b.Number)
	upper, work, state := filepath.Join(disk, "upper"), filepath.Join(disk, "work"), filepath.Join(disk, "state")
	for _, dir := range []struct {
		path string
		mode os.FileMode
	}{{root, 0o755}, {upper, 0o755}, {work, 0o700}, {state, 0o711}, {filepath.Join(upper, "root"), 0o700}} {
		if err := makeDir(dir.path, dir.mode); err != nil {
			return err
		}
	}
	// Nothing of what root has at home on the machine is there.
	if err := unix.Setxattr(filepath.Join(upper, "root"), "trusted.overlay.opaque", []byte("y"), 0); err != nil {
		return err
	}
	if err := mount("overlay", root, "overlay", "lowerdir=/,upperdir="+upper+",workdir="+work); err != nil {
		return err
	}
	at := func(path string) string { return filepath.Join(root, path) }
	for _, m := range []struct{ kind, at, options string }{
		{"proc", "/proc", ""}, {"sysfs", "/sys", ""}, {"devtmpfs", "/dev", ""},
		{"devpts", "/dev/pts", "gid=5,mode=620,ptmxmode=666"}, {"tmpfs", "/dev/shm", "mode=1777"},
		{"tmpfs", "/run", "mode=755"},
	} {
		if err := mount(m.kind, at(m.at), m.kind, m.options); err != nil {
			return err
		}
	}
	if err := bindDir(state, at("/var/lib/orrery"), 0o711); err != nil {
		return err
	}
	// where LXC asks for AppArmor, if the kernel has it
	_ = mount("securityfs", at("/sys/kernel/security"), "securityfs", "")
	for name := range b.Programs {
		if err := bindFile(filepath.Join(programs, name), at(filepath.Join("/usr/local/bin", name))); err != nil {
			return err
		}
	}
	for _, dir := range b.Shown {
		if err := bindReadOnly(filepath.Join(shown, dir), at(dir)); err != nil {
			return err
		}
	}
	if err := bindFile(keeperSocket, at(Within)); err != nil {
		return err
	}
	if err := mountGroups(mounted, at(mounted)); err != nil {
		return err
	}
	if err := lendLayers(at("/var/lib/orrery/store")); err != nil {
		return err
	}
	return pretend(at)
}

// mountGroups mounts control groups as the machine has them; a host sees its own only.
func mountGroups(from, at string) error {
	all := hierarchies(from)
	if len(all) == 1 && all[0].alone {
		return mount("cgroup2", at, "cgroup2", "")
	}
	if err := mount("tmpfs", at, "tmpfs", "mode=755"); err != nil {
		return err
	}
	for _, h := range all {
		name := filepath.Base(h.dir)
		on, kind, options := filepath.Join(at, name), "cgroup", name
		switch {
		case h.v2:
			kind, options = "cgroup2", ""
		case name == "systemd":
			options = "none,name=systemd"
		}
		if err := os.Mkdir(on, 0o755); err != nil {
			return err
		}
		if err := mount(kind, on, kind, options); err != nil {
			return err
		}
	}
	return copyLinks(from, at)
}

// copyLinks copies the other names of hierarchies, such as cpu for cpu,cpuacct.
func copyLinks(from, at string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type() != fs.ModeSymlink {
			continue
		}
		to, err := os.Readlink(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if err := os.Symlink(to, filepath.Join(at, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// lendLayers shows the layers of the machine's store that are whole in the host's. What it builds
// itself comes beside them. Of a layer with a kernel each part is shown, so that the host can put
// there what its virtual machines boot from.
func lendLayers(store string) error {
	entries, err := os.ReadDir(layers)
	if err != nil || len(entries) == 0 {
		return err
	}
	for _, e := range entries {
		from, at := filepath.Join(layers, e.Name()), filepath.Join(store, e.Name())
		if !tree.Exists(filepath.Join(from, "layer.json")) {
			continue
		}
		lend := bindReadOnly
		if kernels, _ := filepath.Glob(filepath.Join(from, "tree/boot/vmlinuz*")); len(kernels) > 0 {
			lend = bindParts
		}
		if err := lend(from, at); err != nil && tree.Exists(from) { // somebody may have removed it just now
			return err
		}
	}
	return os.Chmod(store, 0o700)
}

// bindParts shows what is in a directory in one of the host's own.
func bindParts(from, at string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := makeDir(at, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		part := filepath.Join(from, e.Name())
		switch {
		case e.IsDir():
			err = bindReadOnly(part, filepath.Join(at, e.Name()))
		case e.Type().IsRegular() && filepath.Ext(e.Name()) != ".lock":
			err = bindFileReadOnly(part, filepath.Join(at, e.Name()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ofMachine are kernel settings that there are once on a machine, and that orrery raises when a
// site comes up and puts back when it goes. Each host has its own of these, which have no effect:
// were they the machine's, the first host to put them back would do so for all sites on the
// machine.
var ofMachine = []string{
	"fs/inotify/max_user_instances", "fs/inotify/max_user_watches", "kernel/keys/maxbytes", "kernel/keys/maxkeys",
	"kernel/pid_max", "kernel/pty/max",
}

// pretend lets the host have its own of what there is once in a kernel: such settings, and a name
// for the time since it was started. As that hides something of /proc, there is another /proc of
// which nothing is hidden: without one, the kernel mounts none in a user namespace.
func pretend(at func(path string) string) error {
	boot := make([]byte, 16)
	_, _ = rand.Read(boot) // it never fails
	own := map[string]string{"kernel/random/boot_id": fmt.Sprintf("%x-%x-%x-%x-%x\n", boot[:4], boot[4:6], boot[6:8],
		boot[8:10], boot[10:])}
	for _, name := range ofMachine {
		if text, err := os.ReadFile(filepath.Join("/proc/sys", name)); err == nil {
			own[name] = string(text)
		}
	}
	if err := makeDir(at("/run/proc"), 0o700); err != nil {
		return err
	}
	if err := mount("proc", at("/run/proc"), "proc", ""); err != nil {
		return err
	}
	for name, text := range own {
		instead := at(filepath.Join("/run/.instead", name))
		if err := makeDir(filepath.Dir(instead), 0o755); err != nil {
			return err
		}
		if err := write(map[string]string{instead: text}, 0o644); err != nil {
			return err
		}
		if err := bind(instead, at(filepath.Join("/proc/sys", name)), 0); err != nil {
			return err
		}
	}
	return nil
}
