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

// mountRoot mounts the host's root: an overlay of the machine's root and the host's disk.
func (b hostConfig) mountRoot() error {
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
	// The host must not see the files in root's home directory on the machine.
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
	// LXC looks there for AppArmor, if the kernel has it.
	_ = mount("securityfs", at("/sys/kernel/security"), "securityfs", "")
	for name := range b.Programs {
		if err := bindFile(filepath.Join(programsDir, name), at(filepath.Join("/usr/local/bin", name))); err != nil {
			return err
		}
	}
	for _, dir := range b.Binds {
		if err := bindReadOnly(filepath.Join(bindsDir, dir), at(dir)); err != nil {
			return err
		}
	}
	if err := bindFile(supervisorSocket, at(SocketInHost)); err != nil {
		return err
	}
	if err := mountGroups(mounted, at(mounted)); err != nil {
		return err
	}
	if err := bindLayers(at("/var/lib/orrery/store")); err != nil {
		return err
	}
	return hideKernelState(at)
}

// mountGroups mounts the same hierarchies of control groups as on the machine. A host sees only its
// own groups.
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

// copyLinks copies the symbolic links to hierarchies, such as cpu for cpu,cpuacct.
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

// bindLayers shows the complete layers of the machine's store in the host's store. The host can
// build other layers beside them. The parts of a layer with a kernel are mounted one by one, so
// that the host can add the files from which its virtual machines boot.
func bindLayers(store string) error {
	entries, err := os.ReadDir(layersDir)
	if err != nil || len(entries) == 0 {
		return err
	}
	for _, e := range entries {
		from, at := filepath.Join(layersDir, e.Name()), filepath.Join(store, e.Name())
		if !tree.Exists(filepath.Join(from, "layer.json")) {
			continue
		}
		lend := bindReadOnly
		if kernels, _ := filepath.Glob(filepath.Join(from, "tree/boot/vmlinuz*")); len(kernels) > 0 {
			lend = bindParts
		}
		if err := lend(from, at); err != nil && tree.Exists(from) { // another process may have removed it just now
			return err
		}
	}
	return os.Chmod(store, 0o700)
}

// bindParts mounts the entries of a directory in a directory of the host.
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

// machineSettings are kernel settings that exist once on a machine. Orrery raises them when a site comes
// up, and restores them when it ends. Each host sees its own copies, which have no effect. With the
// real settings, the first host to restore them would do so for all sites on the machine.
var machineSettings = []string{
	"fs/inotify/max_user_instances", "fs/inotify/max_user_watches", "kernel/keys/maxbytes", "kernel/keys/maxkeys",
	"kernel/pid_max", "kernel/pty/max",
}

// hideKernelState provides the host with its own copies of things that exist once in a kernel: the
// settings above, and the boot id. The copies hide parts of /proc. The kernel then allows no new
// mount of proc in a user namespace unless a complete one exists. So pretend also mounts a complete
// /proc elsewhere.
func hideKernelState(at func(path string) string) error {
	boot := make([]byte, 16)
	_, _ = rand.Read(boot) // it never fails
	own := map[string]string{"kernel/random/boot_id": fmt.Sprintf("%x-%x-%x-%x-%x\n", boot[:4], boot[4:6], boot[6:8],
		boot[8:10], boot[10:])}
	for _, name := range machineSettings {
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
