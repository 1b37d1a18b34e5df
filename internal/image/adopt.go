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

// Adopt puts a layer that was built elsewhere into the store, unless the store has it: lay makes
// the tree, whose content must be the one on record. Nothing proves that the content is what the
// recipe makes by whose digest all sites of the host will find it: the caller has the operator's
// word for it.
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
	lines, bytes, err := scan(ctx, tree, inSilence)
	if err != nil {
		return fmt.Errorf("digest of the tree: %w", err)
	}
	if lines.digest() != r.Content {
		return problem.New(problem.Failed,
			"layer %s (%s) is not as it was built: its content has the digest %s instead of %s",
			r.Digest, r.Title, lines.digest(), r.Content).
			Try("orrery image verify on the host on which it was backed up; without --trust-layers it is built from its recipe")
	}
	adopted := *r
	adopted.Size = bytes
	return g.commit(&adopted, lines)
}

// Portable returns the record of a layer as another host may have it: without devices, which layers
// had that were built formerly.
func (s *Store) Portable(digest string) (*Record, error) {
	r, err := s.Record(digest)
	if err != nil {
		return nil, err
	}
	lines, err := readManifest(filepath.Join(s.Dir, digest, "manifest.gz"))
	if err != nil {
		return nil, err
	}
	if without := slices.DeleteFunc(slices.Clone(lines), ofDevice); len(without) < len(lines) {
		r.Content, r.Files = without.digest(), len(without)
	}
	return r, nil
}

// ofDevice tells the lines of devices, but for overlayfs's marks.
func ofDevice(line string) bool {
	quoted, err := strconv.QuotedPrefix(line)
	if err != nil {
		return false
	}
	fields := strings.Fields(line[len(quoted):]) // mode, owner, and of a device "dev" and its numbers
	return len(fields) > 3 && fields[2] == "dev" && (fields[3] != "0:0" || !strings.HasPrefix(fields[0], "02"))
}
