package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"orrery/internal/apply"
	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/control/here"
	"orrery/internal/control/register"
	"orrery/internal/engine/nodedir"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/twin"
	"orrery/internal/visible"
	"orrery/internal/volume"
)

// A restoration is one call of restore.
type restoration struct {
	*Session
	o    RestoreOptions
	from *backup.Restore
	name string // of the site
	twin string
}

// RestoreOptions say what of a backup is brought back, and where it goes.
type RestoreOptions struct {
	Dir         string // where the site directory goes; "": one with the site's name, and of a twin with its state
	To          string // the name of a twin that is made of it
	Replace     bool   // the site that is on this host goes, with its data
	TrustLayers bool   // layers in the backup come into the store
	Identity    string // a file with a secret key of age, for the secrets
	Passphrase  string // a file with a passphrase, for the secrets
	Parallel    int    // most steps under way at once; 0: DefaultParallel
}

// Restored is what came of a restore.
type Restored struct {
	Site  *site.Site
	Title string   // of the backup
	Dir   string   // the site directory
	Nodes []string // that were in the backup; none: all of the site
}

// Restore brings back a site that was backed up, from a file or directory of backups.
func (c *Session) Restore(ctx context.Context, text string, o RestoreOptions) (*Restored, error) {
	if err := c.Allowed(); err != nil {
		return nil, err
	}
	v, id, m, err := vault.OpenOne(text)
	if err != nil {
		return nil, err
	}
	defer v.Close() //nolint:errcheck // it was only read
	r := &restoration{Session: c, o: o, name: m.Site, twin: m.Twin}
	if o.To != "" {
		r.twin = o.To
	}
	if r.from, err = r.prepare(v, id, m); err != nil {
		return nil, err
	}
	there, err := r.there()
	if err != nil {
		return nil, err
	}
	if there != "" && !o.Replace && !r.from.Resumes() {
		return nil, r.agree(there)
	}
	if err := r.agreePaths(); err != nil {
		return nil, err
	}
	if err := c.Verify(ctx, v, id); err != nil {
		return nil, err
	}
	return r.run(ctx)
}

// clearRestore removes what a restore of a site has left that was interrupted.
func (c *Session) clearRestore(ctx context.Context, s *site.Site) error {
	if _, err := os.Stat(backup.Aside(c.Dirs, s.Key())); err != nil {
		return nil
	}
	lock, err := backup.TakeLock(ctx, c.Dirs, s.Key(), c.Holder())
	if err != nil {
		return err
	}
	defer lock.Release()
	return backup.Clear(c.Dirs, s.Key())
}

// prepare says where all of the backup goes.
func (r *restoration) prepare(v vault.Vault, id string, m *vault.Manifest) (*backup.Restore, error) {
	with, err := vault.Identities(r.o.Identity, r.o.Passphrase)
	if err != nil {
		return nil, err
	}
	if r.twin != "" {
		if err := twin.Legal(r.twin); err != nil {
			return nil, err
		}
	}
	dir := r.o.Dir
	if dir == "" {
		dir = r.name
		if r.twin != "" {
			dir = filepath.Join(r.Dirs.Site(r.site().Key()), "site")
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	return &backup.Restore{
		From: v, ID: id, Manifest: m, Dirs: r.Dirs, Store: r.Store(), Key: r.site().Key(), SiteDir: dir, Twin: r.twin != "",
		Replace: r.o.Replace, TrustLayers: r.o.TrustLayers, With: with, Title: vault.Title(v, id),
	}, nil
}

// site is as much of the site as is known before its directory is there.
func (r *restoration) site() *site.Site {
	return &site.Site{Name: r.name, Twin: r.twin, Production: r.twin == "" && r.from != nil && r.from.Manifest.Production}
}

// run restores: whatever can be wrong is looked at first, then all is laid down aside, then put in place.
func (r *restoration) run(ctx context.Context) (*Restored, error) {
	lock, err := backup.TakeLock(ctx, r.Dirs, r.from.Key, r.Holder())
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	if err := r.MayChange(r.site()); err != nil {
		return nil, err
	}
	resumes := r.from.Resumes()
	there := ""
	if !resumes {
		if there, err = r.there(); err != nil {
			return nil, err
		}
		if err := r.from.CheckSiteDir(ctx); err != nil {
			return nil, err
		}
		if err := r.agree(there); err != nil {
			return nil, err
		}
	}
	r.from.Was = r.from.Was || there != ""
	watch := r.Watcher.Bytes("restore")
	r.from.Saw = watch.Add
	err = r.from.Stage(ctx)
	watch.Close()
	if err != nil {
		return nil, err
	}
	for what, n := range r.from.Lacked {
		r.notice(r.from.Key, "not restored, because they are not taken here: %s (%s)", visible.Line(what), phrase.Count(n, "file"))
	}
	if titles := r.from.Distrusted(); len(titles) > 0 {
		r.notice(r.from.Key, "built from their recipes, and not taken from the backup: %s (--trust-layers takes those of a backup that you made)", visible.Line(phrase.List(titles, 4)))
	}
	return r.place(ctx)
}

// there tells what of the site is on this host already; "": nothing that matters.
func (r *restoration) there() (string, error) {
	key := r.from.Key
	nodes, err := nodedir.All(r.Dirs, key)
	if err != nil {
		return "", err
	}
	kept, err := volume.List(r.Dirs, key)
	if err != nil {
		return "", err
	}
	if len(nodes)+len(kept) > 0 {
		return fmt.Sprintf("%s and %s of %s", phrase.Count(len(nodes), "node"), phrase.Count(len(kept), "volume"), key), nil
	}
	if r.twin != "" {
		if _, err := r.ReadTwin(key); err == nil {
			return "twin " + r.twin, nil
		}
	}
	return strings.Join(r.from.InTheWay(), ", "), nil
}

// agree refuses to touch what is there, unless that is wanted.
func (r *restoration) agree(there string) error {
	if there == "" {
		return nil
	}
	if !r.o.Replace {
		return problem.New(problem.Refused, "this host already has: %s; nothing was done", there).
			Try("restore a twin beside it with --to NAME, or replace it with --replace")
	}
	why := fmt.Sprintf("This host already has: %s. Their data would be deleted permanently.", there)
	if _, err := r.Asker.Ask(Question{About: Replace, Site: r.name, Why: why}); err != nil {
		return err
	}
	_, err := r.AskProduction(r.site(), why)
	return err
}

// agreePaths asks before volumes come to directories of the host that are not Orrery's: the backup says where they are.
func (r *restoration) agreePaths() error {
	outside := r.from.Outside()
	if len(outside) == 0 || r.from.Resumes() {
		return nil
	}
	why := fmt.Sprintf("Volumes in the backup would go to directories outside %s: %s.", r.Dirs.State, strings.Join(outside, ", "))
	if _, err := r.Asker.Ask(Question{About: Paths, Site: r.name, Why: why}); err != nil {
		return problem.New(problem.Refused, "volumes in the backup would go to directories outside %s: %s; nothing was done", r.Dirs.State, phrase.List(outside, 8)).
			Try("type %s when asked, or say --yes-paths %s; --to NAME restores a twin, whose volumes stay with its state", r.name, r.name)
	}
	return nil
}

// clear takes down what is there, with its data.
func (r *restoration) clear(ctx context.Context) error {
	s := r.site()
	f, err := r.Bare(ctx, s)
	if err != nil {
		return err
	}
	j := &Job{Session: r.Session, Site: s, Hosts: f, Parallel: r.o.Parallel, Restores: true, Plan: func(hosts []observe.Host) (*plan.Plan, error) {
		return plan.Down(s, hosts, plan.Goal{Volumes: true}), nil
	}}
	_, err = j.Run(ctx)
	return err
}

// place takes down what was there, puts all in its place and brings the site up. Whoever goes on after a kill begins here.
func (r *restoration) place(ctx context.Context) (*Restored, error) {
	if r.from.ToClear() {
		if err := r.clear(ctx); err != nil {
			return nil, err
		}
		if err := r.from.Cleared(); err != nil {
			return nil, err
		}
	}
	bare, err := r.Bare(ctx, r.site())
	if err != nil {
		return nil, err
	}
	machine, err := here.Of(bare.All[0])
	if err != nil {
		return nil, err
	}
	if err := r.LockedOn(ctx, r.site(), bare, func(*Account) error { return r.from.Place(ctx, machine.ByName()) }); err != nil {
		return nil, err
	}
	b := *r.Session
	b.SiteDir, b.Twin = r.from.SiteDir, r.twin
	if r.twin != "" {
		if err := r.noteTwin(); err != nil {
			return nil, err
		}
	}
	s, err := b.Load()
	if err != nil {
		return nil, err
	}
	f, err := b.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	near, err := here.Of(f.All[0])
	if err != nil {
		return nil, err
	}
	near.Fill(r.from.Fill)
	return r.up(ctx, &b, s, f)
}

// noteTwin writes down what the twin is of.
func (r *restoration) noteTwin() error {
	if _, err := r.ReadTwin(r.from.Key); err == nil {
		return nil
	}
	s, err := sitefile.Load(r.from.SiteDir)
	if err != nil {
		return err
	}
	o := twin.Options{Name: r.twin, Owner: Who()}
	if r.from.Manifest.Partial {
		o.Only = r.from.Names()
	}
	if _, err := twin.Of(s, o); err != nil {
		return err
	}
	return r.WriteTwin(twin.Record{
		Site: r.name, Dir: r.from.SiteDir, Options: o, Volumes: "backup " + r.from.ID, Filled: true, Created: time.Now().UTC().Truncate(time.Second),
	})
}

// up makes the nodes, gives each its private layer before it starts, and waits until they are healthy.
func (r *restoration) up(ctx context.Context, b *Session, s *site.Site, f *apply.Fleet) (*Restored, error) {
	var chosen map[string]bool
	var names []string
	if r.from.Manifest.Partial {
		chosen, names = map[string]bool{}, r.from.Names()
		for _, name := range names {
			chosen[name] = true
		}
	}
	j := &Job{Session: b, Site: s, Base: s, Hosts: f, Parallel: r.o.Parallel, Restores: true, Before: func() error { return b.markUp(s) },
		Plan: func(hosts []observe.Host) (*plan.Plan, error) {
			return plan.Up(s, hosts, plan.Goal{Nodes: chosen, Releases: f.Releases()})
		}}
	_, failed := j.Run(ctx)
	if err := r.say(s, f.All[0]); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	return &Restored{Site: s, Title: r.from.Title, Dir: r.from.SiteDir, Nodes: names}, nil
}

// say tells what is other than it was. When all private layers are in place, an interrupted restore has nothing left to be gone on with.
func (r *restoration) say(s *site.Site, h *apply.Steered) error {
	found, err := nodedir.All(r.Dirs, s.Key())
	if err != nil {
		return err
	}
	var nodes []nodedir.Record
	made, there := map[string]bool{}, map[int]bool{}
	for _, f := range found {
		nodes = append(nodes, *f.Record)
		made[f.Record.Name], there[f.Record.ID] = true, true
	}
	content, recipe := r.from.Rebuilt(nodes)
	if len(content) > 0 {
		r.notice(r.from.Key, "built anew, with another content than when it was backed up: layer %s (packages may be newer; --with-layers keeps them)",
			phrase.List(content, 4))
	}
	if len(recipe) > 0 && len(nodes) > 0 {
		r.notice(r.from.Key, "no node stands on it any more, because the site file makes other layers: layer %s", phrase.List(recipe, 4))
	}
	if !r.from.Opened() {
		r.notice(r.from.Key, "generated secrets and SSH host keys were made anew, and roles that have secrets applied anew; data that was made with the former secrets may not accept them")
	}
	waits := false
	for _, n := range r.from.Unfilled() {
		_, declared := s.Node(n.Name)
		if there[n.ID] || declared && !made[n.Name] { // it could not be filled, or not be made
			waits = true
			continue
		}
		r.notice(r.from.Key, "not restored: a node %s of another release, or that the site no longer declares", n.Name)
	}
	if waits {
		return nil // the same command goes on
	}
	near, err := here.Of(h)
	if err != nil {
		return err
	}
	if err := r.from.FitSnapshots(near.ByName()); err != nil {
		return err
	}
	return r.from.Clear()
}

// finishRestore brings a restore that was interrupted to its end, if the site had been touched; if not, what was laid down goes. It gives the restore that it has
// tried to bring to its end, if there was one. Of the site nothing but its name and twin need be known.
func (c *Session) finishRestore(ctx context.Context, s *site.Site) (*backup.Restore, error) {
	if c.Allowed() != nil {
		return nil, nil // whoever needs root says so
	}
	from, err := c.Interrupted(s)
	if err != nil || from == nil {
		return nil, err
	}
	lock, err := backup.TakeLock(ctx, c.Dirs, s.Key(), c.Holder())
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	if err := c.MayChange(s); err != nil {
		return nil, err
	}
	if from, err = c.Interrupted(s); err != nil || from == nil { // it may have come to its end
		return nil, err
	}
	switch {
	case from.Staged():
		c.notice(s.Key(), "a restore of %s from %s was interrupted; it is brought to its end first", s.Key(), from.Title)
		r := &restoration{Session: c, name: s.Name, twin: s.Twin, from: from, o: RestoreOptions{Replace: from.Replace}}
		_, err := r.place(ctx)
		return from, err
	case from.Harmless():
		c.notice(s.Key(), "a restore of %s was interrupted before it had touched anything; what it had laid down is removed", s.Key())
		return nil, from.Clear()
	}
	return nil, nil // there was no site, and not all of it is laid down: whoever makes nodes is refused
}

// restoreFirst brings an interrupted restore to its end before a site is brought up. Elsewhere is the directory from which that has brought
// it up, if it is another than the one that is meant.
func (c *Session) restoreFirst(ctx context.Context, s *site.Site) (elsewhere string, err error) {
	from, err := c.finishRestore(ctx, s)
	if err != nil || from == nil {
		return "", err
	}
	dir, err := c.Absolute()
	if err != nil || dir == from.SiteDir {
		return "", err
	}
	return from.SiteDir, nil
}

// resumeRestored brings up a site whose restore was interrupted. If that cannot come to its end, nodes that it does not concern come up all the same.
func (c *Session) resumeRestored(ctx context.Context, m register.Marker) (*site.Site, *apply.Result, error) {
	from, err := c.finishRestore(ctx, &site.Site{Name: m.Site, Twin: m.Twin})
	if from != nil {
		c.SiteDir = from.SiteDir
	}
	if err != nil && (from == nil || !from.Placed()) {
		return nil, nil, err
	}
	s, failed := c.Load()
	if failed != nil {
		return nil, nil, errors.Join(err, failed)
	}
	var others []string
	if err != nil {
		if others = from.Lacks(s); len(others) == 0 {
			return s, nil, err
		}
	}
	r, failed := c.up(ctx, s, others, UpOptions{})
	return s, r, errors.Join(err, failed)
}

// Verify reads a backup and compares it with its digests.
func (c *Session) Verify(ctx context.Context, v vault.Vault, id string) error {
	watch := c.Watcher.Bytes("verify")
	defer watch.Close()
	return v.Verify(ctx, id, watch.Add)
}
