package volume

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/sync/singleflight"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// copyGroup ensures that a directory shared by several nodes is made by only one of them.
var copyGroup singleflight.Group

// ProvideCopy makes the copy of a volume that a node in quarantine uses, if it does not exist. It
// copies the volume itself while its nodes are frozen. The copy is empty if that is declared or the
// volume does not exist yet. Made.How is "" if nothing was copied.
func ProvideCopy(ctx context.Context, dirs host.Dirs, key, node string, m spec.Mount, root NodeRoot,
	still FreezeFunc) (CopyResult, error) {
	path := Path(dirs, key, node, m)
	if _, err := os.Stat(path); err == nil {
		return CopyResult{}, nil
	}
	from := Path(dirs, key, node, LiveMount(m))
	if _, err := os.Stat(from); m.Copy != site.CopySnapshot || !m.From().Copyable || err != nil {
		return CopyResult{}, Provide(ctx, dirs, key, node, m, root)
	}
	made, err, _ := copyGroup.Do(path, func() (any, error) {
		if _, err := os.Stat(path); err == nil {
			return CopyResult{}, nil
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return CopyResult{}, err
		}
		return CloneLive(ctx, from, path, still)
	})
	return made.(CopyResult), err
}

// LiveMount returns the mount of the volume itself for a mount that may be a copy.
func LiveMount(m spec.Mount) spec.Mount {
	m.Copy, m.Release = "", 0
	return m
}
