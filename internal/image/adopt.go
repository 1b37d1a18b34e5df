package image

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Adopt stores a layer that was built elsewhere, unless the store has it. The function lay creates the tree,
// whose content must match the record. Nothing proves that the recipe, under whose digest all sites
// of the host will find the layer, produces this content. The caller must have the operator's
// permission to trust it.
func (s *Store) Adopt(ctx context.Context, r *Record, lay func(tree string) error) error {
	if !IsDigest(r.Digest) {
		return problem.New(problem.Failed, "%q is not the digest of a layer", r.Digest)
	}
	g, err := s.stage(ctx, &spec.Layer{Digest: r.Digest, Title: r.Title})
	if g == nil {
		return err
	}
	defer g.close()
	tree := filepath.Join(g.dir, "tree")
	if err := lay(tree); err != nil {
		return err
	}
	lines, bytes, err := scan(ctx, tree, digestQuietly)
	if err != nil {
		return fmt.Errorf("digest of the tree: %w", err)
	}
	if lines.digest() != r.Content {
		return problem.New(problem.Failed,
			"layer %s (%s) differs from what was built: its content has the digest %s instead of %s",
			r.Digest, r.Title, lines.digest(), r.Content).
			Try("run orrery image verify on the host that was backed up; without --trust-layers, the layer is built from its recipe")
	}
	adopted := *r
	adopted.Size = bytes
	return g.commit(&adopted, lines)
}

// PortableRecord returns the record of a layer without its devices, as other hosts have the layer. Layers
// built by earlier versions may contain devices.
func (s *Store) PortableRecord(digest string) (*Record, error) {
	r, err := s.Record(digest)
	if err != nil {
		return nil, err
	}
	lines, err := readManifest(filepath.Join(s.Dir, digest, "manifest.gz"))
	if err != nil {
		return nil, err
	}
	if without := slices.DeleteFunc(slices.Clone(lines), describesDevice); len(without) < len(lines) {
		r.Content, r.Files = without.digest(), len(without)
	}
	return r, nil
}

// describesDevice reports whether a line of a manifest describes a device other than an overlayfs
// whiteout.
func describesDevice(line string) bool {
	quoted, err := strconv.QuotedPrefix(line)
	if err != nil {
		return false
	}
	fields := strings.Fields(line[len(quoted):]) // mode, owner and, for a device, "dev" and its numbers
	return len(fields) > 3 && fields[2] == "dev" && (fields[3] != "0:0" || !strings.HasPrefix(fields[0], "02"))
}
