package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/tree"
	"orrery/internal/treesync/sitearchive"
)

// Editions returns the digests of the copies of site directories that the host keeps of some
// releases.
func (h *releaseHost) Editions(_ context.Context, of []int) (map[int]string, error) {
	all := map[int]string{}
	for _, n := range of {
		dir := h.Dirs.Release(h.Key, n)
		if !tree.Exists(filepath.Join(dir, sitearchive.Site)) {
			continue // the release was never staged here, or is being removed
		}
		digest, err := sitearchive.Digest(dir)
		if err != nil {
			digest = "" // even if only one file is missing
		}
		all[n] = digest
	}
	return all, nil
}

// SendEdition sends the copy of the site directory from which a release was staged.
func (h *releaseHost) SendEdition(ctx context.Context, release int, rw io.ReadWriter) error {
	dir := h.Dirs.Release(h.Key, release)
	if !tree.Exists(filepath.Join(dir, sitearchive.Site)) {
		return fs.ErrNotExist
	}
	return sitearchive.Send(ctx, dir, rw)
}

// KeepEdition stores such a copy from another host.
func (h *releaseHost) KeepEdition(ctx context.Context, release int, digest string, rw io.ReadWriter) error {
	if release <= 0 {
		return problem.New(problem.Failed, "no release has the number %d", release)
	}
	to := h.Dirs.Release(h.Key, release)
	fresh := filepath.Join(h.Dirs.Releases(h.Key), "."+strconv.Itoa(release)+"-new")
	if err := tree.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.MkdirAll(fresh, 0o700); err != nil {
		return err
	}
	came, err := sitearchive.Receive(ctx, rw, fresh)
	if err == nil && came != digest {
		err = fmt.Errorf("its digest is %s, not %s", came, digest)
	}
	if err != nil {
		return errors.Join(problem.New(problem.Failed, "the copy of the site directory of release %d was not received",
			release).At(fresh).Because(err), tree.RemoveAll(fresh))
	}
	// the copies of volumes beside them are not touched
	return host.ReplaceParts(fresh, to, sitearchive.Site, sitearchive.Record)
}
