package image

import (
	"context"
	"os"
	"path/filepath"

	"orrery/internal/host"
	"orrery/internal/image/access"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// OutputDir is where the function passed to WithContainer finds the directory of the host that it may
// write to.
const OutputDir = access.BuildDir + "/out"

// WithContainer calls do with a scratch container on a complete layer. The container has everything that
// builds have. The layer is not changed. The container sees the host's directory out at OutputDir, and
// can write results there.
func (s *Store) WithContainer(ctx context.Context, digest string, m site.Mirror, out string,
	do func(ctx context.Context, in host.Runner) error) error {
	g, err := s.stage(ctx, &spec.Layer{Digest: spec.Digest([]string{"aside", digest})})
	if err != nil {
		return err
	}
	defer g.close()
	held, err := s.locks.layer(ctx, digest, host.Shared) // keep GC from removing the layer
	if err != nil {
		return err
	}
	defer held.Release()
	record, err := s.Record(digest)
	if err != nil {
		return problem.New(problem.Failed, "layer %s is not in the store", digest).Because(err).Try("orrery image build")
	}
	base, trees := record, []string{s.Tree(digest)}
	for _, below := range record.lower() {
		trees = append(trees, s.Tree(below))
	}
	if record.Base != "" {
		if base, err = s.Record(record.Base); err != nil {
			return broken(s, record.Base, err)
		}
	}
	if err = os.MkdirAll(filepath.Join(g.dir, "build", "out"), 0o755); err != nil {
		return err
	}
	c, err := g.startOnLayers(ctx, trees, base, m, mountBind{source: out, target: OutputDir[1:]})
	if err == nil {
		err = do(ctx, c)
		c.stop()
	}
	if err != nil && ctx.Err() != nil {
		return problem.New(problem.Interrupted, "interrupted").Because(context.Cause(ctx))
	}
	return err
}
