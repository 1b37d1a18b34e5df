package volume

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// provideFilled makes the directory of a volume with what the node's layers have at its path.
func provideFilled(ctx context.Context, path, node string, m spec.Mount, root NodeRoot) error {
	err := root.WithLayers(m.Path, func(dir string) error {
		_, err := Clone(ctx, dir, path)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return problem.New(problem.Mistake, "volume %s: the layers of node %s have no directory %s to begin with", m.Volume,
			node, m.Path).
			Try(`let a package or build step of the role create it, or remove from = "layer"`)
	}
	return err
}
