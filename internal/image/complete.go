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
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// complete adds to an imported tree what a node needs to boot. Images for application containers
// have no init system. If the image has its distribution's package manager, complete installs one.
func (g *staging) complete(ctx context.Context, l *spec.Layer, m site.Mirror, log io.Writer, say func(string)) error {
	dir := filepath.Join(g.dir, "tree")
	root, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Lstat("etc"); err != nil {
		return problem.New(problem.Mistake, "import %s: it is not a root file system: /etc is missing",
			l.Image.Import).
			Try("create the archive from within the root: tar -C ROOT -cf FILE .")
	}
	d := distro.ForImage(l.Image)
	for _, init := range d.Services.Init {
		if _, err := root.Lstat(init); err == nil {
			return nil
		}
	}
	if _, err := root.Lstat(d.Packages.Tool); err != nil {
		return problem.New(problem.Mistake, "import %s: it has no %s, and no %s to install it", l.Image.Import, d.Services.Name,
			d.Packages.Name).
			Try("import a whole system, with %s", d.Services.Name)
	}
	say("adds " + d.Services.Name + " and other packages that a node needs")
	// Create what the scratch container mounts on.
	if err := writeFiles(root, distro.File{Path: "/etc/resolv.conf"}); err != nil {
		return err
	}
	if err := root.MkdirAll("etc/orrery", os.Geteuid(), os.Getegid()); err != nil {
		return err
	}
	binds, env, err := g.buildMounts(dir, &Record{}, m)
	if err != nil {
		return err
	}
	overlay := &rootfs.Overlay{Upper: dir, Work: filepath.Join(g.dir, "work")}
	c, err := startContainer(ctx, g, overlay, env, binds)
	if err != nil {
		return err
	}
	err = c.Put(ctx, serviceGuard(d))
	if err == nil {
		err = g.store.Cache.Install(ctx, c, d, spec.Packages(l.Image), log)
	}
	c.stop()
	if err != nil {
		return fmt.Errorf("packages of %s: %w", strings.TrimSpace(l.Title), err)
	}
	return canonical(ctx, dir, uint32(containerIDs.Size))
}
