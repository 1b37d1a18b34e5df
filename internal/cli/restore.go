package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/apply/local"
	"orrery/internal/backup"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/twin"
	"orrery/internal/visible"
	"orrery/internal/volume"
)

// restoreOptions are those of `orrery restore`.
type restoreOptions struct {
	dir, to          string
	replace          bool
	trust            bool   // layers in the backup come into the store
	outside          string // of the site whose volumes come to directories that its site file names
	name             string // of the site whose data is replaced
	keys, passphrase string
	parallel         int
	node             string   // which alone is laid down
	files            []string // NODE:PATH, which alone are
	consent
}

func (a *app) restoreVerb() *cobra.Command {
	o := restoreOptions{parallel: defaultParallel()}
	c := &cobra.Command{
		Use:   "restore FILE|DIR[@ID]",
		Short: "Bring back a site that was backed up, on any host",
		Long: `Reads the whole backup and compares it with its digests, before anything is touched; lays all of it down; puts the site directory, volumes and what
nodes had written in place; builds the layers that are missing; and brings the nodes up, until they are healthy.

A backup is taken for that of a stranger: its names are checked, and nothing is written but where this command says. The site in it is brought up,
though, and whoever wrote a site file decides what root does here: look at it first if you did not write it. Layers in the backup are used only with
--trust-layers, because other sites on this host would stand on them, too.

With --file or --node, single files or what one node has are laid down in a directory, and nothing of the site is touched.

Secrets that the backup does not hold, or for which no key is given, are made anew. A site that is on this host already is not touched, unless --replace
is given, or --to, which restores a twin beside it.`,
		Example: "  orrery restore /srv/backups --dir /srv/karoo\n  orrery restore karoo.orrery --to yesterday\n  orrery restore /srv/backups --file db:/srv/data/ledger --dir /root/found",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if o.node != "" || len(o.files) > 0 {
				return a.pick(c, args[0], o)
			}
			return a.restore(c.Context(), args[0], o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.dir, "dir", "", "where the site `directory` goes (default: one with the site's name; of a twin: with its state)")
	f.StringArrayVar(&o.files, "file", nil, "only this file or directory, as `NODE:PATH`, into the current directory or --dir; may be repeated")
	f.StringVar(&o.node, "node", "", "only what the node of this `name` has, into a new directory: ./NAME or --dir")
	f.StringVar(&o.to, "to", "", "restore a twin of that `name`")
	f.BoolVar(&o.replace, "replace", false, "the site that is on this host goes, with its data (asks for its name)")
	f.BoolVar(&o.trust, "trust-layers", false, "use the layers in the backup, which you made, instead of building them from their recipes")
	f.StringVar(&o.outside, "yes-paths", "", "the `name` of the site whose volumes come back to directories that its site file names, given instead of asked for")
	f.StringVar(&o.name, "yes-replace", "", "the `name` of the site whose data goes, given instead of asked for")
	f.StringVar(&o.keys, "secrets-identity", "", "decrypt the secrets with the secret key of age in this `file`")
	f.StringVar(&o.passphrase, "secrets-passphrase-file", "", "decrypt the secrets with the passphrase in this `file`")
	f.IntVar(&o.parallel, "parallel", o.parallel, "most steps under way at once")
	o.consent.flags(c)
	return c
}

// A restoration is one call of restore.
type restoration struct {
	*app
	o    restoreOptions
	from *backup.Restore
	name string // of the site
	twin string
}

func (a *app) restore(ctx context.Context, text string, o restoreOptions) error {
	if err := needRoot(); err != nil {
		return err
	}
	v, id, err := backup.Open(text)
	if err != nil {
		return err
	}
	defer v.Close() //nolint:errcheck // it was only read
	id, m, err := backup.Choose(v, id)
	if err != nil {
		return err
	}
	r := &restoration{app: a, o: o, name: m.Site, twin: m.Twin}
	if o.to != "" {
		r.twin = o.to
	}
	if r.from, err = r.prepare(v, id, m); err != nil {
		return err
	}
	there, err := r.there()
	if err != nil {
		return err
	}
	if there != "" && !o.replace && !r.from.Resumes() {
		return r.agree(there)
	}
	if err := r.agreePaths(); err != nil {
		return err
	}
	if err := a.verify(ctx, v, id); err != nil {
		return err
	}
	return r.run(ctx)
}

// takeRestoreLock lets one restore of a site be at work at a time, also while the site's own lock is not held.
func (a *app) takeRestoreLock(key string) (*host.Lock, error) {
	holder := host.Holder{Who: who(), Pid: os.Getpid(), Since: time.Now(), Command: a.command}
	return host.TakeLock(filepath.Join(a.dirs.Site(key), "restore.lock"), holder)
}

// clearRestore removes what a restore of a site has left that was interrupted.
func (a *app) clearRestore(s *site.Site) error {
	if _, err := os.Stat(backup.Aside(a.dirs, s.Key())); err != nil {
		return nil
	}
	lock, err := a.takeRestoreLock(s.Key())
	if err != nil {
		return err
	}
	defer lock.Release()
	return backup.Clear(a.dirs, s.Key())
}

// prepare says where all of the backup goes.
func (r *restoration) prepare(v backup.Vault, id string, m *backup.Manifest) (*backup.Restore, error) {
	with, err := backup.Identities(r.o.keys, r.o.passphrase)
	if err != nil {
		return nil, err
	}
	if r.twin != "" {
		if err := twin.Legal(r.twin); err != nil {
			return nil, err
		}
	}
	dir := r.o.dir
	if dir == "" {
		dir = r.name
		if r.twin != "" {
			dir = filepath.Join(r.dirs.Site(r.site().Key()), "site")
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	return &backup.Restore{
		From: v, ID: id, Manifest: m, Dirs: r.dirs, Store: image.Open(r.dirs.State), Key: r.site().Key(), SiteDir: dir, Twin: r.twin != "",
		Replace: r.o.replace, TrustLayers: r.o.trust, With: with, Title: chosenName(v, id),
	}, nil
}

// site is as much of the site as is known before its directory is there.
func (r *restoration) site() *site.Site {
	return &site.Site{Name: r.name, Twin: r.twin, Production: r.twin == "" && r.from != nil && r.from.Manifest.Production}
}

// run restores: whatever can be wrong is looked at first, then all is laid down aside, then put in place.
func (r *restoration) run(ctx context.Context) error {
	lock, err := r.takeRestoreLock(r.from.Key)
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := r.mayChange(r.site()); err != nil {
		return err
	}
	resumes := r.from.Resumes()
	there := ""
	if !resumes {
		if there, err = r.there(); err != nil {
			return err
		}
		if err := r.from.CheckSiteDir(ctx); err != nil {
			return err
		}
		if err := r.agree(there); err != nil {
			return err
		}
	}
	r.from.Was = r.from.Was || there != ""
	shown := newMeter(r.err, "restore")
	r.from.Saw = shown.add
	err = r.from.Stage(ctx)
	shown.close()
	if err != nil {
		return err
	}
	for what, n := range r.from.Lacked {
		fmt.Fprintf(r.err, "orrery: not restored, because they are not taken here: %s (%s)\n", visible.Line(what), count(n, "file"))
	}
	if titles := r.from.Distrusted(); len(titles) > 0 {
		fmt.Fprintf(r.err, "orrery: built from their recipes, and not taken from the backup: %s (--trust-layers takes those of a backup that you made)\n", visible.Line(shortList(titles, 4)))
	}
	return r.place(ctx)
}

// there tells what of the site is on this host already; "": nothing that matters.
func (r *restoration) there() (string, error) {
	key := r.from.Key
	nodes, err := nodedir.All(r.dirs, key)
	if err != nil {
		return "", err
	}
	kept, err := volume.List(r.dirs, key)
	if err != nil {
		return "", err
	}
	if len(nodes)+len(kept) > 0 {
		return fmt.Sprintf("%s and %s of %s", count(len(nodes), "node"), count(len(kept), "volume"), key), nil
	}
	if r.twin != "" {
		if _, err := r.readTwin(key); err == nil {
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
	if !r.o.replace {
		return problem.New(problem.Refused, "on this host there are already: %s; nothing was done", there).
			Try("restore a twin beside it with --to NAME, or replace it with --replace")
	}
	why := fmt.Sprintf("On this host there are already: %s. Their data would be removed for good.", there)
	if err := r.askName(r.site(), why, "--yes-replace", r.o.name); err != nil {
		return err
	}
	return r.askProduction(r.site(), why, r.o.consent)
}

// agreePaths asks before volumes come to directories of the host that are not Orrery's: the backup says where they are.
func (r *restoration) agreePaths() error {
	outside := r.from.Outside()
	if len(outside) == 0 || r.from.Resumes() {
		return nil
	}
	why := fmt.Sprintf("Volumes in the backup come to directories outside of %s: %s.", r.dirs.State, strings.Join(outside, ", "))
	if err := r.askName(r.site(), why, "--yes-paths", r.o.outside); err != nil {
		return problem.New(problem.Refused, "volumes in the backup come to directories outside of %s: %s; nothing was done", r.dirs.State, shortList(outside, 8)).
			Try("type %s when asked, or say --yes-paths %s; --to NAME restores a twin, whose volumes stay with its state", r.name, r.name)
	}
	return nil
}

// clear takes down what is there, with its data.
func (r *restoration) clear(ctx context.Context) error {
	s := r.site()
	h, err := r.bare(s)
	if err != nil {
		return err
	}
	j := &job{app: r.app, site: s, host: h, parallel: r.o.parallel, restores: true, plan: func(hosts []observe.Host) (*plan.Plan, error) {
		return plan.Down(s, hosts, plan.Goal{Volumes: true}), nil
	}}
	_, err = j.run(ctx)
	return err
}

// place takes down what was there, puts all in its place and brings the site up. Whoever goes on after a kill begins here.
func (r *restoration) place(ctx context.Context) error {
	if r.from.ToClear() {
		if err := r.clear(ctx); err != nil {
			return err
		}
		if err := r.from.Cleared(); err != nil {
			return err
		}
	}
	bare, err := r.bare(r.site())
	if err != nil {
		return err
	}
	if err := r.locked(ctx, r.site(), bare, func(*account) error { return r.from.Place(ctx, bare.Engines) }); err != nil {
		return err
	}
	b := *r.app
	b.siteDir, b.twin = r.from.SiteDir, r.twin
	if r.twin != "" {
		if err := r.noteTwin(); err != nil {
			return err
		}
	}
	s, err := b.load()
	if err != nil {
		return err
	}
	h, err := b.here(s)
	if err != nil {
		return err
	}
	h.Created = r.from.Fill
	return r.up(ctx, &b, s, h)
}

// noteTwin writes down what the twin is of.
func (r *restoration) noteTwin() error {
	if _, err := r.readTwin(r.from.Key); err == nil {
		return nil
	}
	s, err := sitefile.Load(r.from.SiteDir)
	if err != nil {
		return err
	}
	o := twin.Options{Name: r.twin, Owner: who()}
	if r.from.Manifest.Partial {
		for i := range r.from.Manifest.Nodes {
			o.Only = append(o.Only, r.from.Manifest.Nodes[i].Name)
		}
	}
	if _, err := twin.Of(s, o); err != nil {
		return err
	}
	return r.writeTwin(twinRecord{
		Site: r.name, Dir: r.from.SiteDir, Options: o, Volumes: "backup " + r.from.ID, Filled: true, Created: time.Now().UTC().Truncate(time.Second),
	})
}

// up makes the nodes, gives each its private layer before it starts, and waits until they are healthy.
func (r *restoration) up(ctx context.Context, b *app, s *site.Site, h *local.Host) error {
	var chosen map[string]bool
	var names []string
	if r.from.Manifest.Partial {
		chosen = map[string]bool{}
		for i := range r.from.Manifest.Nodes {
			chosen[r.from.Manifest.Nodes[i].Name] = true
			names = append(names, r.from.Manifest.Nodes[i].Name)
		}
	}
	j := &job{app: b, site: s, base: s, host: h, parallel: r.o.parallel, restores: true, begin: func() error { return b.markUp(s) },
		plan: func(hosts []observe.Host) (*plan.Plan, error) {
			return plan.Up(s, hosts, plan.Goal{Nodes: chosen, Releases: h.Releases})
		}}
	_, failed := j.run(ctx)
	if err := r.say(s, h); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	fmt.Fprintf(r.out, "%s: restored from %s, into %s.\n\n", s.Key(), r.from.Title, r.from.SiteDir)
	return b.status(ctx, s, names)
}

// say tells what is other than it was. When all private layers are in place, an interrupted restore has nothing left to be gone on with.
func (r *restoration) say(s *site.Site, h *local.Host) error {
	found, err := nodedir.All(r.dirs, s.Key())
	if err != nil {
		return err
	}
	var nodes []nodedir.Record
	made := map[string]bool{}
	for _, f := range found {
		nodes = append(nodes, *f.Record)
		made[f.Record.Name] = true
	}
	content, recipe := r.from.Rebuilt(nodes)
	if len(content) > 0 {
		fmt.Fprintf(r.err, "orrery: built anew, with another content than when it was backed up: layer %s (packages may be newer; --with-layers keeps them)\n",
			shortList(content, 4))
	}
	if len(recipe) > 0 && len(nodes) > 0 {
		fmt.Fprintf(r.err, "orrery: no node stands on it any more, because the site file makes other layers: layer %s\n", shortList(recipe, 4))
	}
	if !r.from.Opened() {
		fmt.Fprintf(r.err, "orrery: generated secrets and SSH host keys were made anew, and roles that have secrets applied anew; data that was made with the former secrets may not accept them\n")
	}
	waits := false
	for _, name := range r.from.Unfilled() {
		_, declared := s.Node(name)
		waits = waits || declared && !made[name]
		if made[name] || !declared {
			fmt.Fprintf(r.err, "orrery: not restored: a node %s of another release, or that the site no longer declares\n", name)
		}
	}
	if waits {
		return nil // the same command goes on
	}
	if err := r.from.FitSnapshots(h.Engines); err != nil {
		return err
	}
	return r.from.Clear()
}
