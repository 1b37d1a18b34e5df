package image

import (
	"context"
	"fmt"
	"path/filepath"

	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Adopt puts a layer that was built elsewhere into the store, unless the store has it: lay makes the tree, whose content must be
// the one on record. Nothing proves that the content is what the recipe makes by whose digest all sites of the host will find it: the
// caller has the operator's word for it.
func (s *Store) Adopt(ctx context.Context, r *Record, lay func(tree string) error) error {
	if !IsDigest(r.Digest) {
		return problem.New(problem.Failed, "%q is no digest of a layer", r.Digest)
	}
	if s.has(r.Digest) {
		return nil
	}
	g, err := s.stage(ctx, &spec.Layer{Digest: r.Digest, Title: r.Title}, func(string) {})
	if g == nil {
		return err
	}
	defer g.close()
	tree := filepath.Join(g.dir, "tree")
	if err := lay(tree); err != nil {
		return err
	}
	lines, bytes, err := scan(ctx, tree)
	if err != nil {
		return fmt.Errorf("digest of the tree: %w", err)
	}
	if lines.digest() != r.Content {
		return problem.New(problem.Failed, "layer %s (%s) is not as it was built: its content has the digest %s instead of %s",
			r.Digest, r.Title, lines.digest(), r.Content).Try("orrery image verify on the host on which it was backed up")
	}
	adopted := *r
	adopted.Size = bytes
	return g.commit(&adopted, lines)
}
