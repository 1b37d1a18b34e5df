package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"orrery/internal/backup/vault"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// A restore that is interrupted at any moment is completed by the next run that brings the site up.
// Until everything is staged, nothing of the site has been changed, so the staged files can be
// removed. From then on the backup is not needed any more: the staged files are complete.

// stagedManifest is the name of the manifest in the staging directory.
const stagedManifest = "manifest.json"

// TakeLock takes a lock that only one restore of a site can hold. The site's own lock need not be
// held.
func TakeLock(ctx context.Context, dirs host.Dirs, key string, by host.Holder) (*host.Lock, error) {
	return host.TakeLock(ctx, filepath.Join(dirs.Site(key), "restore.lock"), by)
}

// OpenPart returns the part of a restore that was started on this host, or nil if there is none.
func OpenPart(dirs host.Dirs, store *image.Store, key string) (*Part, error) {
	at := StagingDir(dirs, key)
	if !tree.Exists(at) {
		return nil, nil
	}
	p, err := readProgress(dirs, key)
	// a former version left it like this, and may have changed the site already
	p.Committed = p.Committed || p.Staged && !p.PerHost
	r := &Part{
		Layout: Layout{Dirs: dirs, Key: key, SiteDir: p.SiteDir, Twin: p.Twin}, Store: store,
		ID: p.ID, Title: p.From, Without: p.Without, Replace: p.Replace, plan: p,
	}
	if err == nil && p.Staged {
		r.Manifest, err = readManifest(r.staged(stagedManifest))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New(problem.Left, "a restore of %s was interrupted, and its progress is unknown",
			key).At(at).Because(problem.PathErrorCause(err)).
			Try("run the same orrery restore again, or start over with orrery down --volumes")
	}
	return r, nil
}

// readManifest reads the manifest of the staged backup.
func readManifest(at string) (*vault.Manifest, error) {
	m, err := host.ReadJSON[vault.Manifest](at)
	if err != nil {
		return nil, err
	}
	return &m, m.Check()
}

// readProgress reads how far a restore of a site has come.
func readProgress(dirs host.Dirs, key string) (progress, error) {
	return host.ReadJSON[progress](filepath.Join(StagingDir(dirs, key), "restore.json"))
}

// MustClear reports whether the former site must still be taken down.
func (r *Part) MustClear() bool { return r.plan.Was && !r.plan.Cleared }

// Cleared records that the former site was taken down. What exists from then on was restored.
func (r *Part) Cleared() error {
	r.plan.Cleared = true
	return r.note()
}

// Placed reports whether everything except the private layers has been moved to its place.
func (r *Part) Placed() bool {
	for _, m := range r.plan.Moves {
		if tree.Exists(m.From) {
			return false
		}
	}
	return r.plan.Staged && !r.MustClear()
}

func (r *Part) note() error {
	if err := host.WriteJSON(r.staged("restore.json"), 0o600, r.plan); err != nil {
		return err
	}
	dir, err := os.Open(r.staged())
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// A source is the location of a backup on another machine.
type source string

// Where returns the location.
func (s source) Where() string { return string(s) }

func (r *Part) damaged(what string, err error) error {
	return vault.Damaged(source(r.Title), what, err)
}
