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

// making ensures that a directory shared by several nodes is made by only one of them.
var making singleflight.Group

// ProvideCopy makes the copy of a volume that a node in quarantine uses, if it does not exist. It
// copies the volume itself while its nodes are frozen. The copy is empty if that is declared or the
// volume does not exist yet. Made.How is "" if nothing was copied.
func ProvideCopy(ctx context.Context, dirs host.Dirs, key, node string, m spec.Mount, account Account,
	still Still) (Made, error) {
	path := Path(dirs, key, node, m)
	if _, err := os.Stat(path); err == nil {
		return Made{}, nil
	}
	from := Path(dirs, key, node, Live(m))
	if _, err := os.Stat(from); m.Copy != site.Snapshot || !m.From().Copyable || err != nil {
		return Made{}, Provide(dirs, key, node, m, account)
	}
	made, err, _ := making.Do(path, func() (any, error) {
		if _, err := os.Stat(path); err == nil {
			return Made{}, nil
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return Made{}, err
		}
		return CloneLive(ctx, from, path, still)
	})
	return made.(Made), err
}

// Live returns the mount of the volume itself for a mount that may be a copy.
func Live(m spec.Mount) spec.Mount {
	m.Copy, m.Release = "", 0
	return m
}
