// Package backups has the operations on backups: take, list, verify, prune, repair, extract and
// restore. A restore is completed by package control, because any up of the site continues it.
package backups

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"orrery/internal/apply"
	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/host/waits"
	"orrery/internal/image"
	"orrery/internal/journal/hook"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/event"
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
	s, err := c.Load()
	if err != nil {
		return nil, err
	}
	return TakeSite(ctx, c, s, selectors, target, o)
}

// TakeDeclared backs up a site as its site file declares, and removes the backups that it does not
// keep.
func TakeDeclared(ctx context.Context, c *control.Session, s *site.Site) (*Taken, error) {
	b := &s.Backup
	taken, err := TakeSite(ctx, c, s, nil, strings.TrimRight(b.To, "/")+"/",
		Options{Layers: b.Layers, Keys: b.SecretsTo, By: c.Version})
	if err != nil || b.Keep == 0 {
		return taken, err
	}
	if _, _, err := pruneSite(b.To, s.Key(), b.Keep); err != nil {
		return taken, problem.New(problem.Failed, "backup %s was taken, but former ones could not be removed", taken.Title).
			Because(err)
	}
	return taken, nil
}

// TakeSite backs up the selected nodes of a site, or all of it.
func TakeSite(ctx context.Context, c *control.Session, s *site.Site, selectors []string, target string,
	o Options) (*Taken, error) {
	set, f, err := selectHosts(ctx, c, s, selectors, target)
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
	r, err := backUpHosts(ctx, c, &backup.Backup{Selection: set, Into: into, To: to, By: o.By, Who: control.UserName(),
		Saw: watch.Add}, f)
	watch.Close()
	if err != nil {
		return nil, err
	}
	taken := &Taken{
		Backup: describe(into.Where(), r.ID, r.Manifest), Name: set.Site.Name, Title: vault.Title(into, r.ID),
		Took:   time.Since(began).Seconds(),
		Blocks: r.Checked.Blocks, Reread: r.Checked.Read, Mended: len(r.Checked.Corrupt) > 0,
	}
	taken.addReport(r)
	c.NotifyHooks(ctx, set.Site, hook.Event{Event: event.BackupDone, Result: "done", Backup: taken.Title,
		Bytes: taken.Bytes})
	reportCorrupt(c, into, &r.Checked)
	return taken, nil
}

// selectHosts returns what to back up, and the hosts that have it.
func selectHosts(ctx context.Context, c *control.Session, s *site.Site, selectors []string,
	target string) (*backup.Selection, *apply.Fleet, error) {
	if err := c.CheckAllowedOn(s); err != nil {
		return nil, nil, err
	}
	f, names, err := control.SelectedHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, nil, err
	}
	set, err := newSelection(c, s, names, target)
	return set, f, err
}

// newSelection returns what to back up, with what this machine has of it.
func newSelection(c *control.Session, s *site.Site, names map[string]bool, target string) (*backup.Selection, error) {
	if len(names) == len(s.Nodes) {
		names = nil // the whole site, even if all nodes were named
	}
	dir, err := c.AbsDirectory()
	if err != nil {
		return nil, err
	}
	target, err = filepath.Abs(target)
	return &backup.Selection{Site: s, Dir: dir, Dirs: c.Dirs, Store: image.Open(c.Dirs.State), Nodes: names,
		Target: target}, err
}

// retryWhileLocked calls do, which takes the lock of a site. If another process holds the lock, patiently
// waits and tries again.
func retryWhileLocked(ctx context.Context, do func() error) error {
	deadline := time.Now().Add(lockTimeout)
	return waits.For(ctx, "the site", func() (waits.Holder, error) {
		err := do()
		if time.Now().After(deadline) {
			return nil, err
		}
		return waits.HolderOf(err)
	})
}

// lockTimeout is how long a backup waits for other processes that change the site.
const lockTimeout = 2 * time.Minute
