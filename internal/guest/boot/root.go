package boot

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A rootShare is a file system by which a host shares directories.
type rootShare struct {
	kind string // file system type
	data string // mount options
	// Cache options: own for the root, which no other machine changes, others for directories that
	// the host may change at any moment.
	own, others string
}

// shares are the supported shares, by their names in a Config. With 9p, files can be mapped for
// writing (mmap) only with a cache, which cache=mmap uses for such files only. A ring of Xen holds
// at most 512 KiB in each direction, so the message size must be less than half of that.
var shares = map[string]rootShare{
	VirtioFS: {kind: "virtiofs"},
	NineP:    {kind: "9p", data: "trans=virtio,version=9p2000.L,msize=512000,", own: "cache=loose", others: "cache=mmap"},
	NinePXen: {kind: "9p", data: "trans=xen,version=9p2000.L,msize=131072,", own: "cache=loose", others: "cache=mmap"},
}

func shareOf(way string) (rootShare, error) {
	s, ok := shares[way]
	if !ok {
		return s, fmt.Errorf("the root file system %q is unknown: use orrery and orrery-guest of the same version", way)
	}
	return s, nil
}

// mountRoot mounts the root that the host shares.
func (s rootShare) mountRoot() error {
	if err := unix.Mount(RootTag, "/"+newRoot, s.kind, 0, s.data+s.own); err != nil {
		return fmt.Errorf("the root cannot be mounted with %s: %w", s.kind, err)
	}
	return nil
}

// mount mounts another directory that the host shares, in the root of the node.
func (s rootShare) mount(m Mount) error {
	to, err := OpenMountPoint("/"+newRoot, m.Path)
	if err != nil {
		return fmt.Errorf("the mount point %s cannot be created in the root: %w", m.Path, err)
	}
	defer to.Close()
	if err := unix.Mount(m.Tag, fmt.Sprintf("/proc/self/fd/%d", to.Fd()), s.kind, unix.MS_NOSUID|unix.MS_NODEV,
		s.data+s.others); err != nil {
		return fmt.Errorf("%s cannot be mounted with %s: %w", m.Path, s.kind, err)
	}
	return nil
}

// OpenMountPoint opens the directory of a node's root at which a file system is mounted, and creates it if
// it does not exist. It does not follow links out of the root.
func OpenMountPoint(root, path string) (*os.File, error) {
	in, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	path = strings.Trim(path, "/")
	if err := in.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	return in.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// switchRoot makes the node's root the root of this process, and moves the mounts there. The
// initramfs stays below it, invisible.
func switchRoot() error {
	if err := os.Chdir("/" + newRoot); err != nil {
		return err
	}
	for _, name := range []string{"proc", "sys", "dev"} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("/"+name, name, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("/%s cannot be moved to the root of the node: %w", name, err)
		}
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("the root cannot be moved to /: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("the root cannot be entered: %w", err)
	}
	return os.Chdir("/")
}
