package hosts

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// settle is the first that a host does, in its namespaces: it enters its control groups, and makes them the top of what it sees of such.
func settle(args []string) error {
	group, all := args[0], hierarchies(mounted)
	for _, h := range all {
		if err := enter(filepath.Join(h.dir, group)); err != nil {
			return err
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return err
	}
	for _, h := range all {
		if h.alone {
			if err := enter(filepath.Join(h.dir, group, leaf)); err != nil {
				return err
			}
		}
	}
	return become(asInit)
}

// A birth is what a host is told when it begins.
type birth struct {
	Number, Count int
	Keys          keys
	Programs      map[string]string
}

// preside is the life of a host's first process: it makes the host's own root, lets its SSH server in, and then sees off who has no parent any more.
func preside([]string) (err error) {
	defer func() {
		if err != nil {
			fmt.Fprint(os.Stdout, err) // for the keeper
		}
	}()
	var b birth
	if err := json.NewDecoder(bufio.NewReader(os.Stdin)).Decode(&b); err != nil {
		return err
	}
	for _, do := range []func() error{b.mountRoot, b.enterRoot, b.name, b.keysAndAccess, func() error { return address(b.Number) }, serveSSH} {
		if err := do(); err != nil {
			return err
		}
	}
	if _, err := os.Stdout.WriteString(up); err != nil {
		return err
	}
	os.Stdin.Close()
	os.Stdout.Close()
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); errors.Is(err, unix.ECHILD) {
			time.Sleep(time.Second) // somebody may still come in
		}
	}
}

// mountRoot mounts the host's root: the machine's with what the host has written above it, which is on its disk.
func (b birth) mountRoot() error {
	disk, root := diskOf(b.Number), rootOf(b.Number)
	upper, work, state := filepath.Join(disk, "upper"), filepath.Join(disk, "work"), filepath.Join(disk, "state")
	for _, dir := range []struct {
		path string
		mode os.FileMode
	}{{root, 0o755}, {upper, 0o755}, {work, 0o700}, {state, 0o711}, {filepath.Join(upper, "root"), 0o700}} {
		if err := errors.Join(os.MkdirAll(dir.path, dir.mode), os.Chmod(dir.path, dir.mode)); err != nil {
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
	if err := errors.Join(
		mount("proc", at("/proc"), "proc", ""), mount("sysfs", at("/sys"), "sysfs", ""),
		mount("devtmpfs", at("/dev"), "devtmpfs", ""), mount("devpts", at("/dev/pts"), "devpts", "gid=5,mode=620,ptmxmode=666"), mount("tmpfs", at("/dev/shm"), "tmpfs", "mode=1777"),
		mount("tmpfs", at("/run"), "tmpfs", "mode=755"), os.MkdirAll(at("/var/lib/orrery"), 0o711), bind(state, at("/var/lib/orrery"), 0),
	); err != nil {
		return err
	}
	_ = mount("securityfs", at("/sys/kernel/security"), "securityfs", "") // where LXC asks for AppArmor, if the kernel has it
	for name := range b.Programs {
		if err := bindFile(filepath.Join(programs, name), at(filepath.Join("/usr/local/bin", name))); err != nil {
			return err
		}
	}
	return errors.Join(mountGroups(mounted, at(mounted)), lendLayers(at("/var/lib/orrery/store")), pretend(at))
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
		if err := errors.Join(os.Mkdir(on, 0o755), mount(kind, on, kind, options)); err != nil {
			return err
		}
	}
	return copyLinks(from, at)
}

// copyLinks copies the other names of hierarchies, such as cpu for cpu,cpuacct.
func copyLinks(from, at string) error {
	entries, err := os.ReadDir(from)
	for _, e := range entries {
		if e.Type() == fs.ModeSymlink {
			to, err := os.Readlink(filepath.Join(from, e.Name()))
			if err := errors.Join(err, os.Symlink(to, filepath.Join(at, e.Name()))); err != nil {
				return err
			}
		}
	}
	return err
}

// lendLayers shows the layers of the machine's store that are whole in the host's. What it builds itself comes beside them.
func lendLayers(store string) error {
	entries, err := os.ReadDir(layers)
	if err != nil || len(entries) == 0 {
		return err
	}
	for _, e := range entries {
		from, at := filepath.Join(layers, e.Name()), filepath.Join(store, e.Name())
		if !exists(filepath.Join(from, "layer.json")) {
			continue
		}
		if err := errors.Join(os.MkdirAll(at, 0o755), bindReadOnly(from, at)); err != nil && exists(from) { // somebody may have removed it just now
			return err
		}
	}
	return os.Chmod(store, 0o700)
}

// ofMachine are kernel settings that there are once on a machine, and that orrery raises when a site comes up and puts back when it goes. Each host has its own of
// these, which have no effect: were they the machine's, the first host to put them back would do so for all sites on the machine.
var ofMachine = []string{"fs/inotify/max_user_instances", "fs/inotify/max_user_watches", "kernel/keys/maxbytes", "kernel/keys/maxkeys", "kernel/pty/max"}

// pretend lets the host have its own of what there is once in a kernel: such settings, and a name for the time since it was started. As that hides something of /proc,
// there is another /proc of which nothing is hidden: without one, the kernel mounts none in a user namespace.
func pretend(at func(path string) string) error {
	boot := make([]byte, 16)
	_, _ = rand.Read(boot) // it never fails
	own := map[string]string{"kernel/random/boot_id": fmt.Sprintf("%x-%x-%x-%x-%x\n", boot[:4], boot[4:6], boot[6:8], boot[8:10], boot[10:])}
	for _, name := range ofMachine {
		if text, err := os.ReadFile(filepath.Join("/proc/sys", name)); err == nil {
			own[name] = string(text)
		}
	}
	if err := errors.Join(os.MkdirAll(at("/run/proc"), 0o700), mount("proc", at("/run/proc"), "proc", "")); err != nil {
		return err
	}
	for name, text := range own {
		instead := at(filepath.Join("/run/.instead", name))
		err := errors.Join(os.MkdirAll(filepath.Dir(instead), 0o755), os.WriteFile(instead, []byte(text), 0o644))
		if err == nil {
			err = bind(instead, at(filepath.Join("/proc/sys", name)), 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b birth) enterRoot() error { return moveInto(rootOf(b.Number)) }

// name gives the host its name and its identity, and tells it of the others.
func (b birth) name() error {
	if err := unix.Sethostname([]byte(NameOf(b.Number))); err != nil {
		return err
	}
	names := "127.0.0.1 localhost\n::1 localhost\n"
	for i := 1; i <= b.Count; i++ {
		names += AddressOf(i) + " " + NameOf(i) + "\n"
	}
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(b.Keys.Hosts[b.Number].Public)))[:32]
	return write(map[string]string{"/etc/hostname": NameOf(b.Number) + "\n", "/etc/hosts": names, "/etc/machine-id": id + "\n"}, 0o644)
}

// keysAndAccess gives the host its keys, and lets root of every host in.
func (b birth) keysAndAccess() error {
	for _, dir := range []struct {
		path string
		mode os.FileMode
	}{{"/root/.ssh", 0o700}, {"/run/sshd", 0o755}, {"/run/lock", 0o777}} {
		if err := os.MkdirAll(dir.path, dir.mode); err != nil {
			return err
		}
	}
	return write(b.access(), 0o600)
}

// access gives the files by which hosts know one another.
func (b birth) access() map[string]string {
	return map[string]string{
		"/etc/ssh/ssh_host_ed25519_key": b.Keys.Hosts[b.Number].Private,
		"/etc/ssh/sshd_config":          sshdConfig,
		"/root/.ssh/id_ed25519":         b.Keys.User.Private,
		"/root/.ssh/authorized_keys":    b.Keys.User.Public,
		"/root/.ssh/known_hosts":        b.Keys.known(),
		"/root/.ssh/config":             "BatchMode yes\n",
	}
}

const sshdConfig = `HostKey /etc/ssh/ssh_host_ed25519_key
PidFile none
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PermitUserEnvironment yes
UseDNS no
MaxStartups 200
MaxSessions 200
Subsystem sftp internal-sftp
`

// serveSSH starts the SSH server and waits until it answers.
func serveSSH() error {
	log, err := os.OpenFile("/var/log/sshd.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	sshd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", "/etc/ssh/sshd_config")
	sshd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	sshd.Stdout, sshd.Stderr = log, log
	if err := sshd.Start(); err != nil {
		return err
	}
	return patiently(func() error {
		c, err := net.Dial("tcp", "127.0.0.1:22")
		if err != nil {
			return err
		}
		return c.Close()
	})
}

func write(files map[string]string, mode os.FileMode) error {
	for path, text := range files {
		if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
			return err
		}
	}
	return nil
}

// patiently tries for a while, until there is no error.
func patiently(try func() error) error {
	began := time.Now()
	for {
		err := try()
		if err == nil || time.Since(began) > 30*time.Second {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}
