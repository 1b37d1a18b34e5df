package backups

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"orrery/internal/apply"
	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/edition"
)

// releases gives all hosts the releases that are in the backup, and what is live of them. What was under way then is not now.
func (r *restoring) releases(ctx context.Context) error {
	known, err := r.manifest.ReadReleases()
	if err != nil {
		return vault.Damaged(r.from, "what it says of releases", err)
	}
	dir, err := os.MkdirTemp("", "orrery-restore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the hosts have it
	for i := range r.manifest.Trees {
		t := &r.manifest.Trees[i]
		if t.Kind != vault.ReleaseTree {
			continue
		}
		at := filepath.Join(dir, strconv.Itoa(t.Number))
		if err := backup.Lay(ctx, r.from, t, at); err != nil {
			return err
		}
		err := r.fleet.Each(func(_ int, h *apply.Steered) error {
			out, in := io.Pipe()
			go func() { in.CloseWithError(edition.Pack(ctx, at, in)) }()
			defer out.Close() //nolint:errcheck // all of it was read, or nobody wants it
			return h.KeepEdition(ctx, t.Number, out)
		})
		if err != nil {
			return err
		}
	}
	known.Switch, known.Trial, known.Former = nil, nil, nil
	return r.fleet.Each(func(_ int, h *apply.Steered) error { return h.WriteReleases(known) })
}
