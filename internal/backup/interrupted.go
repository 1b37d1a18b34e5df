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

// A restore that is interrupted, at whatever moment, is brought to its end by whoever brings the
// site up next. Until all is laid down nothing of the site has been touched, so that what there is
// of it can go. From then on the backup is not needed any more: what was laid down tells all.

// manifestAside is the manifest of the backup, beside what was laid down of it.
const manifestAside = "manifest.json"

// TakeLock lets one restore of a site be at work at a time, also while the site's own lock is not held.
func TakeLock(ctx context.Context, dirs host.Dirs, key string, by host.Holder) (*host.Lock, error) {
	return host.TakeLock(ctx, filepath.Join(dirs.Site(key), "restore.lock"), by)
}

// OpenPart returns the part of a restore that was begun on this host, or nil.
func OpenPart(dirs host.Dirs, store *image.Store, key string) (*Part, error) {
	at := Aside(dirs, key)
	if !tree.Exists(at) {
		return nil, nil
	}
	p, err := readProgress(dirs, key)
	p.Going = p.Going || p.Staged && !p.Apart // so an earlier Orrery has left it, and may have touched what was there
	r := &Part{
		Layout: Layout{Dirs: dirs, Key: key, SiteDir: p.SiteDir, Twin: p.Twin}, Store: store,
		ID: p.ID, Title: p.From, Without: p.Without, Replace: p.Replace, plan: p,
	}
	if err == nil && p.Staged {
		r.Manifest, err = readManifest(r.aside(manifestAside))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New(problem.Left, "a restore of %s was interrupted, and it cannot be told how far it had come",
			key).At(at).Because(problem.Reason(err)).
			Try("run the same orrery restore again, or orrery down --volumes to begin anew")
	}
	return r, nil
}

// readManifest reads what was in the backup.
func readManifest(at string) (*vault.Manifest, error) {
	m, err := host.ReadJSON[vault.Manifest](at)
	if err != nil {
		return nil, err
	}
	return &m, m.Check()
}

// readProgress reads how far a restore of a site has come.
func readProgress(dirs host.Dirs, key string) (progress, error) {
	return host.ReadJSON[progress](filepath.Join(Aside(dirs, key), "restore.json"))
}

// ToClear reports whether what was there is still to be taken down.
func (r *Part) ToClear() bool { return r.plan.Was && !r.plan.Cleared }

// Cleared notes that what was there has been taken down: what is there from now on is what was restored.
func (r *Part) Cleared() error {
	r.plan.Cleared = true
	return r.note()
}

// Placed reports whether all but private layers is in its place.
func (r *Part) Placed() bool {
	for _, m := range r.plan.Moves {
		if tree.Exists(m.From) {
			return false
		}
	}
	return r.plan.Staged && !r.ToClear()
}

func (r *Part) note() error {
	if err := host.WriteJSON(r.aside("restore.json"), 0o600, r.plan); err != nil {
		return err
	}
	dir, err := os.Open(r.aside())
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// A source is where a backup is that somebody else has.
type source string

// Where names it.
func (s source) Where() string { return string(s) }

func (r *Part) damaged(what string, err error) error {
	return vault.Damaged(source(r.Title), what, err)
}
