package local

import (
	"fmt"
	"os"
	"path/filepath"

	"orrery/internal/host/staging"
	"orrery/internal/image/rootfs"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// withLayers calls do with a path of the host at which the node's layers have a directory. They are mounted
// without the node's private layer, and links in them are followed only inside.
func (l *lifecycle) withLayers(n *spec.Node, path string, do func(dir string) error) error {
	work, err := staging.Create(l.Dirs.State)
	if err != nil {
		return err
	}
	defer work.Remove()
	o := rootfs.Overlay{Lower: l.trees(n), Upper: filepath.Join(work.Path, "upper"),
		Work: filepath.Join(work.Path, "work"), Target: filepath.Join(work.Path, "root")}
	for _, dir := range []string{o.Upper, o.Work, o.Target} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	return o.WithMounted(func() error {
		root, err := tree.Open(o.Target)
		if err != nil {
			return err
		}
		defer root.Close()
		dir, err := root.Sub(path)
		if err != nil {
			return err
		}
		defer dir.Close()
		// Other threads do not see the mount, but can reach an open directory.
		return do(fmt.Sprintf("/proc/self/fd/%d/.", dir.Fd()))
	})
}
