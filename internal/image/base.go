package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"orrery/internal/host"
	"orrery/internal/image/archive"
	"orrery/internal/image/sums"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
)

// BuildBase builds a base image from a suite or a file, unless the store has it. It reports each
// step to say in a few words. The output of the programs it runs is kept in
// <state>/log/build-DIGEST.log.
func (s *Store) BuildBase(ctx context.Context, l *spec.Layer, m site.Mirror, say func(string)) error {
	begun := time.Now()
	g, err := s.stage(ctx, l)
	if g == nil {
		return err
	}
	defer g.close()
	if err := s.disk.checkSpace(minBaseSpace); err != nil {
		return err
	}
	log, err := s.OpenLog(l.Digest)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // what a log lacks at its end is no reason to fail
	err = g.base(ctx, l, m, log, begun, say)
	if ctx.Err() != nil && err != nil {
		return interrupted(ctx, l)
	}
	var p *problem.Problem
	if err != nil && !errors.As(err, &p) {
		err = problem.New(problem.Failed, "image %s could not be built", l.Image.Name).Because(err)
	}
	if errors.As(err, &p) && p.Where == "" {
		p.Where = log.Name()
	}
	return s.disk.explain(err, minBaseSpace)
}

func (g *staging) base(ctx context.Context, l *spec.Layer, m site.Mirror, log *host.Log, begun time.Time,
	say func(string)) error {
	tree, d := filepath.Join(g.dir, "tree"), distro.ForImage(l.Image)
	if l.IsDisk() {
		say("copies " + filepath.Base(l.Image.Import))
		from, taken, err := g.store.imports.origin(ctx, l)
		if err != nil {
			return err
		}
		if err := taken(g.copyDisk(ctx, from)); err != nil {
			return err
		}
		return g.finish(ctx, newRecord(l, begun), begun, say)
	}
	if l.Image.Import != "" {
		say("imports " + filepath.Base(l.Image.Import))
		from, taken, err := g.store.imports.origin(ctx, l)
		if err != nil {
			return err
		}
		if err := taken(archive.Unpack(ctx, from, tree, g.dir, g.store.disk.importSpace())); err != nil {
			return err
		}
		if err := g.complete(ctx, l, m, log, say); err != nil {
			return err
		}
	} else {
		say("builds " + l.Image.Suite + " with " + d.Packages.Maker)
		if err := g.bootstrap(ctx, l, m, log); err != nil {
			return err
		}
	}
	say("adapts the image")
	if err := adaptTree(d, tree); err != nil {
		return fmt.Errorf("adapt the image: %w", err)
	}
	if err := removeVolatile(d, tree); err != nil {
		return fmt.Errorf("clean up the image: %w", err)
	}
	packages, err := read(tree, d.Packages.Installed)
	if err != nil {
		return err
	}
	record := newRecord(l, begun)
	record.Packages = packages
	return g.finish(ctx, record, begun, say)
}

// finish moves a built tree into the store.
func (g *staging) finish(ctx context.Context, r *Record, begun time.Time, say func(string)) error {
	say("computes its digest")
	tree := filepath.Join(g.dir, "tree")
	hashed := &sums.Progress{Say: func(n int64) { say("computes its digest: " + formatSize(uint64(n)) + " read") }}
	lines, bytes, err := scan(ctx, tree, func(ctx context.Context, f *os.File) (string, error) {
		return sums.Digest(ctx, f, hashed.Add)
	})
	if err != nil {
		return fmt.Errorf("digest of the tree: %w", err)
	}
	r.Content, r.Size, r.Files, r.Seconds = lines.digest(), bytes, len(lines), time.Since(begun).Seconds()
	return g.commit(r, lines)
}

func interrupted(ctx context.Context, l *spec.Layer) error {
	return problem.New(problem.Interrupted, "the build of %s was interrupted, and has been removed", l.Title).
		Because(context.Cause(ctx))
}

// LogPath returns the path of the log of a layer's last build.
func (s *Store) LogPath(digest string) string {
	return filepath.Join(s.state, "log", "build-"+digest+".log")
}

// OpenLog creates an empty log for a build.
func (s *Store) OpenLog(digest string) (*host.Log, error) {
	path := s.LogPath(digest)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return host.OpenLog(path, 0o600)
}
