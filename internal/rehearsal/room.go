package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// Mounts of the supervisor for its hosts, which only the supervisor and its hosts see.
const (
	rootDir          = "/mnt"
	disksDir         = rootDir + "/disks"    // of each host: upper and work directories of its root, and state
	rootsDir         = rootDir + "/roots"    // mount points of the hosts' roots
	programsDir      = rootDir + "/programs" // programs in /usr/local/bin of all hosts
	layersDir        = rootDir + "/layers"   // the store whose layers all hosts see
	bindsDir         = rootDir + "/shown"    // directories that all hosts see at the same paths
	supervisorSocket = rootDir + "/socket"   // the supervisor's socket
)

func diskOf(number int) string { return filepath.Join(disksDir, portName(number)) }
func rootOf(number int) string { return filepath.Join(rootsDir, portName(number)) }

// setupRoot changes the root of this process to a new one. It contains only the machine's root file
// system, its control groups and what the hosts need. If this process kept the machine's other
// mounts, other processes could not unmount them. The files of the disks have no names, so they are
// freed when the disks are unmounted.
func setupRoot(o Options, dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	const top = rootDir // until it becomes the root
	below := func(path string) string { return filepath.Join(top, path) }
	mounts := []error{
		bind("/", top, 0),
		mount("proc", below("/proc"), "proc", ""),
		mount("sysfs", below("/sys"), "sysfs", ""),
		bind(mounted, below(mounted), unix.MS_REC),
		mount("devtmpfs", below("/dev"), "devtmpfs", ""),
		mount("tmpfs", below("/run"), "tmpfs", "mode=755"),
		mount("tmpfs", below(rootDir), "tmpfs", "mode=700"),
	}
	if err := errors.Join(mounts...); err != nil {
		return err
	}
	for name, from := range o.Programs {
		if err := bindFile(from, below(filepath.Join(programsDir, name))); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(below(layersDir), 0o700); err != nil {
		return err
	}
	if o.Store != "" {
		if err := bind(o.Store, below(layersDir), 0); err != nil {
			return err
		}
	}
	if err := bindFile(filepath.Join(dir, "socket"), below(supervisorSocket)); err != nil {
		return err
	}
	for _, dir := range o.Binds {
		if err := bindDir(dir, below(filepath.Join(bindsDir, dir)), 0o700); err != nil {
			return err
		}
	}
	if err := makeDisks(o, dir, below(disksDir)); err != nil {
		return err
	}
	return moveInto(top)
}

// moveInto makes a mount the root of this process, and detaches all other mounts.
func moveInto(top string) error {
	if err := os.Chdir(top); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("the root %s: %w", top, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return os.Chdir("/")
}

// makeDisks creates a disk for each host. It formats one and copies it for the others.
func makeDisks(o Options, dir, at string) error {
	first := filepath.Join(dir, portName(1)+".disk")
	if o.Disk == 0 {
		o.Disk = 16 << 30
	}
	err := run("truncate", "-s", strconv.FormatInt(o.Disk, 10), first)
	if err == nil {
		err = run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1", first)
	}
	for i := 2; err == nil && i <= len(o.Places); i++ {
		err = run("cp", "--sparse=always", first, filepath.Join(dir, portName(i)+".disk"))
	}
	for i := 1; err == nil && i <= len(o.Places); i++ {
		path, on := filepath.Join(dir, portName(i)+".disk"), filepath.Join(at, portName(i))
		err = os.MkdirAll(on, 0o700)
		if err == nil {
			err = run("mount", "-o", "loop,noinit_itable", path, on)
		}
		if err == nil {
			err = os.Remove(path)
		}
	}
	return err
}

// deviceOf returns the device number of a host's disk as MAJOR:MINOR.
func deviceOf(number int) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(diskOf(number), &st); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)), nil
}

func mount(what, at, kind, options string) error {
	if err := unix.Mount(what, at, kind, 0, options); err != nil {
		return fmt.Errorf("%s at %s: %w", kind, at, err)
	}
	return nil
}

// bind mounts a directory at another path.
func bind(from, at string, flags uintptr) error {
	if err := unix.Mount(from, at, "", unix.MS_BIND|flags, ""); err != nil {
		return fmt.Errorf("%s at %s: %w", from, at, err)
	}
	return nil
}

// bindDir is like bind, but first creates the mount point.
func bindDir(from, at string, mode os.FileMode) error {
	if err := makeDir(at, mode); err != nil {
		return err
	}
	return bind(from, at, 0)
}

// makeDir creates a directory with a mode that the umask does not change.
func makeDir(path string, mode os.FileMode) error {
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// bindReadOnly is like bindDir, but the mount is read-only.
func bindReadOnly(from, at string) error {
	if err := bindDir(from, at, 0o755); err != nil {
		return err
	}
	return remountReadOnly(at)
}

func bindFileReadOnly(from, at string) error {
	if err := bindFile(from, at); err != nil {
		return err
	}
	return remountReadOnly(at)
}

func remountReadOnly(at string) error {
	return unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// bindFile mounts a file at another path, and creates the mount point.
func bindFile(from, at string) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f.Close()
	return bind(from, at, 0)
}

func run(program string, args ...string) error {
	if out, err := host.Program(context.Background(), program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}
