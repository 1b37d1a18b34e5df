package image

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/image/rootfs"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// complete adds to an imported tree what a node boots with. Images for application containers have no init system; those of Debian's
// kind can be given one.
func (g *staging) complete(ctx context.Context, l *spec.Layer, m site.Mirror, log io.Writer, say func(string)) error {
	tree := filepath.Join(g.dir, "tree")
	root, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Lstat("etc"); err != nil {
		return problem.New(problem.Mistake, "import %s: it is no root file system: it has no /etc", l.Image.Import).
			Try("make the archive from within the root: tar -C ROOT -cf FILE .")
	}
	if _, err := root.Lstat("usr/lib/systemd/systemd"); err == nil {
		return nil
	}
	if _, err := root.Lstat("lib/systemd/systemd"); err == nil {
		return nil
	}
	if _, err := root.Lstat("usr/bin/apt-get"); err != nil {
		return problem.New(problem.Mistake, "import %s: it has no systemd, and no apt to add it", l.Image.Import).
			Try("import a whole system, with systemd")
	}
	say("adds systemd and what else a node needs")
	// The places that the scratch container mounts on.
	if err := put(tree, "/etc/resolv.conf", ""); err != nil {
		return err
	}
	if err := root.MkdirAll("etc/orrery", 0o755); err != nil {
		return err
	}
	binds, env, err := g.surround(tree, &Record{}, m)
	if err != nil {
		return err
	}
	overlay := &rootfs.Overlay{Upper: tree, Work: filepath.Join(g.dir, "work")}
	c, err := startScratch(ctx, g, overlay, env, binds)
	if err != nil {
		return err
	}
	err = c.Put(ctx, policy)
	if err == nil {
		err = g.store.InstallApt(ctx, c, spec.Packages(l.Image), log)
	}
	c.stop()
	if err != nil {
		return fmt.Errorf("packages of %s: %w", strings.TrimSpace(l.Title), err)
	}
	return canonical(tree, scratchIDs.Size)
}
