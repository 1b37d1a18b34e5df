package backups

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/treesync/sitearchive"
)

// liveReleases returns the release records that the hosts will have, with the releases that were
// live in the backup. Switches and trials of that time are dropped. If a host is left out, the
// other hosts keep their records, and liveReleases returns nil.
func (r *restoreRun) liveReleases(ctx context.Context) (json.RawMessage, error) {
	if len(r.manifest.Releases) == 0 || len(r.fleet.Unknown) > 0 {
		return nil, nil
	}
	known, err := r.manifest.ReadReleases()
	if err != nil {
		return nil, vault.Damaged(r.from, "its release records", err)
	}
	known.Switch, known.Trial, known.Former = nil, nil, nil
	if known, err = r.fleet.Records().Name(ctx, known); err != nil {
		return nil, err
	}
	return json.Marshal(known)
}

// eachEdition calls do with the copy of the site directory of each release in the backup. Each copy is
// in a temporary directory of its own.
func (r *restoreRun) eachEdition(ctx context.Context, do func(number int, dir string) error) error {
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
		if err := backup.ExtractTree(ctx, r.from, t, at); err != nil {
			return err
		}
		if err := do(t.Number, at); err != nil {
			return err
		}
	}
	return nil
}

// checkTrusted returns an error if the backup has releases that are not in releases.lock of the site
// directory.
func (r *restoreRun) checkTrusted(ctx context.Context) error {
	s := *r.site
	s.Twin = r.twin
	return r.Session.Connector(&s).Releases(r.fleet).Admit(r.laid != "", func() (map[int]string, error) {
		all := map[int]string{}
		return all, r.eachEdition(ctx, func(number int, dir string) (err error) {
			all[number], err = sitearchive.Digest(dir)
			return err
		})
	})
}
