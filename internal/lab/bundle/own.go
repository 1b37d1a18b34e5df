package bundle

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// checkOwner returns an error if another user can change the directory. To resume a bundle's run means, as
// root, to append to its files and to create the site in it. A link in place of a file would
// redirect the writes.
func checkOwner(dir string) error {
	root, err := openDir(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	me := uint32(os.Geteuid()) //nolint:gosec // an id of a user
	return root.Walk(context.Background(), tree.DefaultBounds, func(e *tree.Entry) error {
		kind, at := e.Stat.Mode&unix.S_IFMT, filepath.Join(dir, e.Path)
		switch {
		case kind != unix.S_IFREG && kind != unix.S_IFDIR:
			return problem.New(problem.Failed, "the bundle contains %s, which no run writes", tree.Kind(e.Stat.Mode)).At(at).
				Try("name another directory by --to")
		case e.Stat.Uid != me || e.IsDir() && e.Stat.Mode&0o022 != 0:
			return problem.New(problem.Failed, "the bundle cannot be written: other users can write to its directory").At(at).
				Try("name a directory that only you can write to by --to")
		}
		return nil
	})
}
