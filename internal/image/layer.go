package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/image/rootfs"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// serviceGuard returns a file that keeps packages from starting their services while they are being
// installed.
func serviceGuard(d *distro.Distribution) host.File {
	return host.File{Path: d.Packages.Guard.Path, Content: []byte(d.Packages.Guard.Text), Mode: 0o755}
}

// BuildLayer builds a role layer, unless the store has it. It starts a scratch container on the
// base, calls fill to apply the roles there, and keeps what the container has written. If two
// processes build the same layer, it is only built once.
func (s *Store) BuildLayer(ctx context.Context, l *spec.Layer, m site.Mirror,
	fill func(ctx context.Context, in host.Runner) error,
	say func(string)) error {
	begun := time.Now()
	g, err := s.stage(ctx, l)
	if g == nil {
		return err
	}
	defer g.close()
	err = s.disk.checkSpace(minLayerSpace)
	if err == nil {
		err = g.layer(ctx, l, m, fill, begun, say)
	}
	if err != nil && ctx.Err() != nil {
		return interrupted(ctx, l)
	}
	var p *problem.Problem
	var list problem.List
	if err != nil && !errors.As(err, &p) && !errors.As(err, &list) {
		err = problem.New(problem.Failed, "layer %s could not be built", l.Title).Because(err)
	}
	return s.disk.explain(err, minLayerSpace)
}

func (g *staging) layer(ctx context.Context, l *spec.Layer, m site.Mirror,
	fill func(ctx context.Context, in host.Runner) error,
	begun time.Time, say func(string)) error {
	var trees []string
	var base, under *Record // the base image, and the layer directly below
	for _, digest := range slices.Backward(l.Lower()) {
		below, err := g.store.locks.layer(ctx, digest, host.Shared) // keep GC from removing the layer
		if err != nil {
			return err
		}
		defer below.Release()
		if under, err = g.store.Record(digest); err != nil {
			return problem.New(problem.Failed, "layer %s: layer %s below it is not in the store", l.Title, digest).Because(err).
				Try("`orrery up` builds it first")
		}
		if base == nil {
			base = under
		}
		trees = append([]string{g.store.Tree(digest)}, trees...)
	}
	say("starts a scratch container")
	c, err := g.startOnLayers(ctx, trees, base, m)
	if err != nil {
		return err
	}
	d := distro.ForImage(l.Image)
	err = g.way.Explain(g.fill(ctx, c, d, fill))
	c.stop()
	if err != nil {
		return err
	}
	tree := filepath.Join(g.dir, "tree")
	say("cleans up the layer")
	if err := finishTree(ctx, d, tree); err != nil {
		return fmt.Errorf("clean up the layer: %w", err)
	}
	record := newRecord(l, begun)
	if record.Packages, err = read(tree, d.Packages.Installed); err != nil {
		return err
	}
	if record.Packages == nil {
		record.Packages = under.Packages // no packages were installed: the node sees those of the layer below
	}
	if l.IsKernel() {
		more, err := read(tree, d.Packages.Unpacked)
		if err != nil {
			return err
		}
		record.Packages = slices.Sorted(slices.Values(slices.Concat(record.Packages, more)))
	}
	if record.Python, err = read(tree, pythonPackages); err != nil {
		return err
	}
	return g.finish(ctx, record, begun, say)
}

// startOnLayers starts a scratch container on layers, the topmost first. It mounts the host directories
// of every build, and more.
func (g *staging) startOnLayers(ctx context.Context, trees []string, base *Record, m site.Mirror,
	more ...mountBind) (*buildContainer, error) {
	bottom := trees[len(trees)-1]
	if err := g.emptyLayer(bottom); err != nil {
		return nil, err
	}
	binds, env, err := g.buildMounts(bottom, base, m)
	if err != nil {
		return nil, err
	}
	overlay := &rootfs.Overlay{Lower: trees, Upper: filepath.Join(g.dir, "tree"), Work: filepath.Join(g.dir, "work")}
	return startContainer(ctx, g, overlay, env, append(binds, more...))
}

// emptyLayer creates the directories that overlayfs writes to. The top of the tree gets the owner
// and mode of the base's.
func (g *staging) emptyLayer(base string) error {
	var st unix.Stat_t
	if err := unix.Stat(base, &st); err != nil {
		return &os.PathError{Op: "stat", Path: base, Err: err}
	}
	tree := filepath.Join(g.dir, "tree")
	for _, dir := range []string{tree, filepath.Join(g.dir, "work")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.Chown(tree, int(st.Uid), int(st.Gid)); err != nil {
		return err
	}
	return os.Chmod(tree, os.FileMode(st.Mode&0o777))
}

func (g *staging) fill(ctx context.Context, c *buildContainer, d *distro.Distribution,
	fill func(ctx context.Context, in host.Runner) error) error {
	if err := c.Put(ctx, serviceGuard(d)); err != nil {
		return err
	}
	if err := fill(ctx, c); err != nil {
		return err
	}
	return c.Run(ctx, host.Command{Args: d.Services.Users}) // once here, because nodes do not do it when they boot
}

// finishTree converts what the container has written to a layer.
func finishTree(ctx context.Context, d *distro.Distribution, dir string) error {
	in, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := in.RemoveAll(d.Packages.Guard.Path); err != nil {
		return err
	}
	if err := removeVolatile(d, dir); err != nil {
		return err
	}
	return canonical(ctx, dir, uint32(containerIDs.Size))
}
