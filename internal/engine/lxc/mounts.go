package lxc

import (
	"fmt"
	"os"
	"strings"

	"orrery/internal/engine/nodedir"
	"orrery/internal/image/rootfs"
)

// writeFstab writes the file that tells LXC what to mount in the node (fstab(5)). It must be
// readable by the node's root, because LXC reads it from inside the node.
func writeFstab(file string, mounts []nodedir.Mount) error {
	var b strings.Builder
	for _, m := range mounts {
		options := "bind,create=dir"
		if m.ReadOnly {
			options += ",ro"
		}
		fmt.Fprintf(&b, "%s %s none %s 0 0\n", rootfs.Escape(m.Bind), rootfs.Escape(strings.TrimPrefix(m.Path, "/")), options)
	}
	fresh := file + "-new"
	if err := os.WriteFile(fresh, []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, file)
}
