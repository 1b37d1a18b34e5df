// Package backups has the operations on backups: take, list, verify, prune, repair, extract and
// restore. A restore is completed by package control, because any up of the site continues it.
package backups

import (
	"context"
	"path/filepath"
	"time"

	"orrery/internal/apply"
	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/host/waits"
	"orrery/internal/image"
	"orrery/internal/journal/hook"
	"orrery/internal/site"
)

// Options say what else to put into a backup, and for whom to encrypt secrets.
type Options struct {
	Layers, Snapshots bool
	Keys              []string // public keys of age
	Passphrase        string   // a file with a passphrase
	By                string   // the version of the program, for the manifest
}

// Taken is a backup that was taken.
type Taken struct {
	Backup
	Name   string  `json:"-"` // of the site
	Title  string  `json:"-"` // by which a user names it
	Took   float64 `json:"-"` // seconds
	Blocks int     `json:"-"` // that earlier backups have, too
	Reread int     `json:"-"` // blocks of these that were read again and compared
	Mended bool    `json:"-"` // damaged blocks that it needs were written again
}

// Take backs up a site, or the selected nodes of it, to a file or a directory of backups.
func Take(ctx context.Context, c *control.Session, selectors []string, target string, o Options) (*Taken, error) {
	set, f, err := chosen(ctx, c, selectors, target)
	if err != nil {
		return nil, err
	}
	set.WithLayers, set.WithSnapshots = o.Layers, o.Snapshots
	to, err := vault.Recipients(o.Keys, o.Passphrase)
	if err != nil {
		return nil, err
	}
	into, err := vault.Write(target)
	if err != nil {
		return nil, err
	}
	defer into.Close() //nolint:errcheck // what is written has been synced by then
	began := time.Now()
	watch := c.Watcher.Bytes(set.Site.Name)
	r, err := takeTogether(ctx, c, &backup.Backup{Set: set, Into: into, To: to, By: o.By, Who: control.Who(),
		Saw: watch.Add}, f)
	watch.Close()
	if err != nil {
		return nil, err
	}
	taken := &Taken{
		Backup: described(into.Where(), r.ID, r.Manifest), Name: set.Site.Name, Title: vault.Title(into, r.ID),
		Took:   time.Since(began).Seconds(),
		Blocks: r.Checked.Blocks, Reread: r.Checked.Read, Mended: len(r.Checked.Rotten) > 0,
	}
	taken.found(r)
	c.Tell(ctx, set.Site, hook.Event{Event: site.BackupDone, Result: "done", Backup: taken.Title, Bytes: taken.Bytes})
	tellRotten(c, into, &r.Checked)
	return taken, nil
}

// chosen returns what to back up, and the hosts that have it.
func chosen(ctx context.Context, c *control.Session, selectors []string, target string) (*backup.Set, *apply.Fleet,
	error) {
	s, err := c.Load()
	if err != nil {
		return nil, nil, err
	}
	if err := c.AllowedOn(s); err != nil {
		return nil, nil, err
	}
	f, names, err := control.ChosenHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, nil, err
	}
	set, err := setIn(c, s, names, target)
	return set, f, err
}

// setIn returns what to back up, with what this machine has of it.
func setIn(c *control.Session, s *site.Site, names map[string]bool, target string) (*backup.Set, error) {
	if len(names) == len(s.Nodes) {
		names = nil // the whole site, even if all nodes were named
	}
	dir, err := c.Absolute()
	if err != nil {
		return nil, err
	}
	target, err = filepath.Abs(target)
	return &backup.Set{Site: s, Dir: dir, Dirs: c.Dirs, Store: image.Open(c.Dirs.State), Nodes: names, Target: target}, err
}

// patiently calls do, which takes the lock of a site. If another process holds the lock, patiently
// waits and tries again.
func patiently(ctx context.Context, do func() error) error {
	deadline := time.Now().Add(lockTimeout)
	return waits.For(ctx, "the site", func() (waits.Held, error) {
		err := do()
		if time.Now().After(deadline) {
			return nil, err
		}
		return waits.Locked(err)
	})
}

// lockTimeout is how long a backup waits for other processes that change the site.
const lockTimeout = 2 * time.Minute
