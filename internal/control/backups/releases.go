package backups

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/control/hosts"
	"orrery/internal/edition"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
)

// liveReleases returns what hosts will have on record of releases: those that were live. What was under way then is not now. While a host is
// left out, the others keep what they have.
func (r *restoring) liveReleases(ctx context.Context) (json.RawMessage, error) {
	if len(r.manifest.Releases) == 0 || len(r.fleet.Unknown) > 0 {
		return nil, nil
	}
	known, err := r.manifest.ReadReleases()
	if err != nil {
		return nil, vault.Damaged(r.from, "what it says of releases", err)
	}
	known.Switch, known.Trial, known.Former = nil, nil, nil
	if known, err = r.fleet.Records().Name(ctx, known); err != nil {
		return nil, err
	}
	return json.Marshal(known)
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
// whoever trusts the one trusts the other. Of a site whose only host is this machine, nobody but its root could write to what it keeps. The releases of a twin that is restored may be those of its site.
func (r *restoring) vouched(ctx context.Context) error {
	if len(hosts.Elsewhere(r.site)) == 0 {
		return nil
	}
	lock, err := sitefile.ReadLock(r.Session.SiteDir)
	if err != nil {
		return err
	}
	err = r.editions(ctx, func(number int, dir string) error {
		digest, err := edition.Digest(dir)
		if err != nil {
			return err
		}
		if known := lock.Digest(r.twin, number); known != digest && lock.Digest("", number) != digest && (known != "" || r.laid == "") {
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
