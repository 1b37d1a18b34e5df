package backup

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"orrery/internal/backup/vault"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// A restore that is interrupted, at whatever moment, is brought to its end by whoever brings the site up next. Until all is laid down nothing of the site has been
// touched, so that what there is of it can go. From then on the backup is not needed any more: what was laid down tells all.

// manifestAside is the manifest of the backup, beside what was laid down of it.
const manifestAside = "manifest.json"

// TakeLock lets one restore of a site be at work at a time, also while the site's own lock is not held.
func TakeLock(ctx context.Context, dirs host.Dirs, key string, by host.Holder) (*host.Lock, error) {
	return host.TakeLock(ctx, filepath.Join(dirs.Site(key), "restore.lock"), by)
}

// Part returns the part of a restore that was begun on this host; nil: none was.
func Part(dirs host.Dirs, store *image.Store, key string) (*Restore, error) {
	at := Aside(dirs, key)
	if !tree.Exists(at) {
		return nil, nil
	}
	r := &Restore{Dirs: dirs, Store: store, Key: key, Saw: func(int64) {}, Lacked: map[string]int{}}
	p, err := readProgress(dirs, key)
	if err == nil {
		p.Going = p.Going || p.Staged && !p.Apart // so an earlier Orrery has left it, and may have touched what was there
		r.take(p)
	}
	if err == nil && p.Staged {
		err = r.recall()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New(problem.Left, "a restore of %s was interrupted, and it cannot be told how far it had come", key).At(at).Because(problem.Reason(err)).
			Try("run the same orrery restore again, or orrery down --volumes to begin anew")
	}
	return r, nil
}

// readProgress reads how far a restore of a site has come.
func readProgress(dirs host.Dirs, key string) (progress, error) {
	return host.ReadJSON[progress](filepath.Join(Aside(dirs, key), "restore.json"))
}

// take goes on from where another run has come to.
func (r *Restore) take(p progress) {
	r.plan, r.ID, r.Title, r.Without = p, p.ID, p.From, p.Without
	r.SiteDir, r.Twin, r.Was, r.Replace = p.SiteDir, p.Twin, p.Was, r.Replace || p.Replace
}

// recall reads what was in the backup.
func (r *Restore) recall() error {
	m, err := host.ReadJSON[vault.Manifest](r.aside(manifestAside))
	if err != nil {
		return err
	}
	r.Manifest = &m
	return m.Check()
}

// ToClear reports whether what was there is still to be taken down.
func (r *Restore) ToClear() bool { return r.plan.Was && !r.plan.Cleared }

// Cleared notes that what was there has been taken down: what is there from now on is what was restored.
func (r *Restore) Cleared() error {
	r.plan.Cleared = true
	return r.note()
}

// Placed reports whether all but private layers is in its place.
func (r *Restore) Placed() bool {
	for _, m := range r.plan.Moves {
		if tree.Exists(m.From) {
			return false
		}
	}
	return r.plan.Staged && !r.ToClear()
}

// A source is where a backup is, or was.
type source string

// Where names it.
func (s source) Where() string { return string(s) }

// source returns where the backup is or, if a restore goes on without the backup, where it was.
func (r *Restore) source() vault.Whereabouts {
	if r.From == nil {
		return source(r.Title)
	}
	return r.From
}
