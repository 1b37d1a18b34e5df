package backups

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"orrery/internal/apply"
	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/edition"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
)

// releases gives all hosts the releases that are in the backup, and what is live of them. What was under way then is not now.
func (r *restoring) releases(ctx context.Context) error {
	known, err := r.manifest.ReadReleases()
	if err != nil {
		return vault.Damaged(r.from, "what it says of releases", err)
	}
	call := r.Call(r.site)
	if err := r.editions(ctx, func(number int, dir string) error { return call.Store(ctx, r.fleet, number, dir) }); err != nil {
		return err
	}
	known.Switch, known.Trial, known.Former = nil, nil, nil
	return r.fleet.Each(func(_ int, h *apply.Steered) error { return h.Releases.Write(known) })
}

// editions calls do with the copy of the site directory of each release in the backup, in a directory of its own.
func (r *restoring) editions(ctx context.Context, do func(number int, dir string) error) error {
	dir, err := os.MkdirTemp("", "orrery-restore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of no use any more
	for i := range r.manifest.Trees {
		t := &r.manifest.Trees[i]
		if t.Kind != vault.ReleaseTree {
			continue
		}
		at := filepath.Join(dir, strconv.Itoa(t.Number))
		if err := backup.Lay(ctx, r.from, t, at); err != nil {
			return err
		}
		if err := do(t.Number, at); err != nil {
			return err
		}
	}
	return nil
}

// vouched refuses a backup with releases that are not the ones in releases.lock of the site directory. If that directory is fresh, it came with the backup, and so did these releases:
// whoever trusts the one trusts the other. The releases of a twin that is restored may be those of its site.
func (r *restoring) vouched(ctx context.Context, fresh bool) error {
	lock, err := sitefile.ReadLock(r.SiteDir)
	if err != nil {
		return err
	}
	err = r.editions(ctx, func(number int, dir string) error {
		digest, err := edition.Digest(dir)
		if err != nil {
			return err
		}
		if known := lock.Digest(r.twin, number); known != digest && lock.Digest("", number) != digest && (known != "" || !fresh) {
			return problem.New(problem.Refused, "release %d in the backup is not the one in releases.lock; nothing was done", number).At(lock.Path()).
				Try("restore with --dir into a directory that does not exist yet; or, if you trust the backup, write its digest there: %d = %q", number, digest)
		}
		lock.Set(r.twin, number, digest)
		return nil
	})
	if err != nil {
		return err
	}
	return lock.Write()
}
