package boot

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mountRoot mounts the root that the host offers.
func mountRoot(kind string) error {
	data := ""
	switch kind {
	case VirtioFS:
	case NineP:
		data = "trans=virtio,version=9p2000.L,msize=512000,cache=loose"
	default:
		return fmt.Errorf("a root by %q is not known: orrery and orrery-guest are to be of one version", kind)
	}
	if err := unix.Mount(RootTag, "/"+newRoot, kind, 0, data); err != nil {
		return fmt.Errorf("the root cannot be mounted by %s: %w", kind, err)
	}
	return nil
}

// switchRoot makes the root of the node that of this process, with what is mounted so far. The initramfs stays below it, out of sight.
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
