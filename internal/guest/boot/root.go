package boot

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A share is a way in which a host shares directories.
type share struct {
	kind string // of file system
	data string // options of its mounts
	// What a guest believes to know of a directory: of its root that nobody else changes it, of others
	// that it may be another one the next moment.
	own, others string
}

// shares are the ways there are, by what a Config calls them. Only a 9p that caches has files that
// may be mapped for writing (mmap: those, and nothing else). Of Xen, a ring holds at most 512 KiB
// each way, so a message is less than half of that.
var shares = map[string]share{
	VirtioFS: {kind: "virtiofs"},
	NineP:    {kind: "9p", data: "trans=virtio,version=9p2000.L,msize=512000,", own: "cache=loose", others: "cache=mmap"},
	NinePXen: {kind: "9p", data: "trans=xen,version=9p2000.L,msize=131072,", own: "cache=loose", others: "cache=mmap"},
}

func shareOf(way string) (share, error) {
	s, ok := shares[way]
	if !ok {
		return s, fmt.Errorf("a root by %q is not known: orrery and orrery-guest are to be of one version", way)
	}
	return s, nil
}

// mountRoot mounts the root that the host offers.
func (s share) mountRoot() error {
	if err := unix.Mount(RootTag, "/"+newRoot, s.kind, 0, s.data+s.own); err != nil {
		return fmt.Errorf("the root cannot be mounted by %s: %w", s.kind, err)
	}
	return nil
}

// mount mounts what else the host offers, in the root of the node.
func (s share) mount(m Mount) error {
	to, err := Place("/"+newRoot, m.Path)
	if err != nil {
		return fmt.Errorf("%s has no place in the root: %w", m.Path, err)
	}
	defer to.Close()
	if err := unix.Mount(m.Tag, fmt.Sprintf("/proc/self/fd/%d", to.Fd()), s.kind, unix.MS_NOSUID|unix.MS_NODEV,
		s.data+s.others); err != nil {
		return fmt.Errorf("%s cannot be mounted by %s: %w", m.Path, s.kind, err)
	}
	return nil
}

// Place opens the directory of a node's root at which something is to be mounted, and makes it if
// it is not there. A link there leads nowhere: nothing is mounted by one.
func Place(root, path string) (*os.File, error) {
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

// switchRoot makes the root of the node that of this process, with what is mounted so far. The
// initramfs stays below it, out of sight.
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
