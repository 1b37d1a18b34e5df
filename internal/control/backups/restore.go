package backups

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/backup"
	"orrery/internal/backup/ferry"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/control/sites"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/twin"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
	"orrery/internal/treesync"
)

// Restore restores a site from a file or directory of backups.
func Restore(ctx context.Context, c *control.Session, text string, o control.RestoreOptions) (*control.Restored,
	error) {
	v, id, m, err := vault.OpenOne(text)
	if err != nil {
		return nil, err
	}
	defer v.Close() //nolint:errcheck // it was only read
	if len(m.Hosts) == 0 && len(c.Without) > 0 {
		return nil, problem.New(problem.Usage, "the backup is of a single host, which cannot be left out").
			At(v.Where()).Try("omit --without")
	}
	if len(m.Hosts) == 0 {
		if err := c.Allowed(); err != nil {
			return nil, err
		}
	}
	b := *c
	r := &restoreRun{Session: &b, o: o, from: v, id: id, manifest: m, title: vault.Title(v, id),
		twin: cmp.Or(o.To, m.Twin)}
	if r.twin != "" {
		if err := twin.ValidName(r.twin); err != nil {
			return nil, err
		}
	}
	if r.twin != "" && len(c.Without) > 0 {
		return nil, problem.New(problem.Usage, "a twin can only be restored on all hosts of its site").At(v.Where()).
			Try("omit --without")
	}
	return r.run(ctx)
}

// A restoreRun is one call of Restore for a site on several hosts.
type restoreRun struct {
	*control.Session // in the restored site directory
	o                control.RestoreOptions
	files            *backup.SiteDir
	laid             string // where the site directory is until all hosts have their parts, or "" if it is in place
	from             vault.Vault
	id, title        string
	manifest         *vault.Manifest
	secrets          vault.Secrets // nil if secrets are generated again
	was              bool          // the site is on its hosts
	site             *site.Site
	fleet            *apply.Fleet
	homes            *placement
	spared           []string // nodes of the backup that may be on a host that is left out

	twin     string // name of the twin to restore, or "" for the site itself
	original *site.Site
	record   twin.Record
	known    bool // the hosts have the record of the twin

	other    error           // error that the site directory differs from the one in the backup
	releases json.RawMessage // that the hosts will have on record
}

// key returns the key under which the hosts know the restored site.
func (r *restoreRun) key() string { return (&site.Site{Name: r.manifest.Site, Twin: r.twin}).Key() }

// retryArgument returns how a user names the backup in the command that completes the restore.
func (r *restoreRun) retryArgument() string {
	if r.o.To != "" {
		return r.title + " --to " + r.o.To
	}
	return r.title
}

func (r *restoreRun) notice(format string, args ...any) {
	r.Session.Watcher.Event(control.Event{Kind: control.Notice, Site: r.key(), Text: fmt.Sprintf(format, args...)})
}

func (r *restoreRun) run(ctx context.Context) (done *control.Restored, err error) {
	if err := verify(ctx, r.Session, r.from, r.id); err != nil {
		return nil, err
	}
	with, err := vault.Identities(r.o.Identity, r.o.Passphrase)
	if err != nil {
		return nil, err
	}
	if r.secrets, err = backup.OpenSecrets(r.from, r.manifest, with); err != nil {
		return nil, err
	}
	defer func() {
		if r.laid != "" {
			err = errors.Join(err, tree.RemoveAll(r.laid))
		}
	}()
	if err := r.writeSiteDirectory(ctx); err != nil {
		return nil, err
	}
	if err := r.Session.CheckAllowedOn(r.site); err != nil {
		return nil, err
	}
	if err := r.Session.MayChange(r.site); err != nil {
		return nil, err
	}
	if err := r.checkTrusted(ctx); err != nil {
		return nil, err
	}
	seen, err := r.observeHosts(ctx)
	if err != nil {
		return nil, err
	}
	going, err := r.isUnderWay(seen)
	if err != nil {
		return nil, err
	}
	if !going {
		if err := r.askConsent(ctx, seen); err != nil {
			return nil, err
		}
		undo, err := r.recordTwin(ctx)
		if err != nil {
			return nil, err
		}
		if err := r.stageParts(ctx); err != nil {
			return nil, errors.Join(err, undo())
		}
	}
	if err := r.placeSiteDirectory(); err != nil {
		return nil, err
	}
	return r.completeRestore(ctx)
}

// placeSiteDirectory moves the site directory into place. Before that, all hosts have staged their parts. After
// a kill, an up from the directory therefore continues the restore, and creates no node without its
// data.
func (r *restoreRun) placeSiteDirectory() error {
	if r.laid == "" {
		return nil
	}
	if err := r.files.Place(); err != nil {
		return err
	}
	r.laid, r.Session.SiteDir = "", r.files.Path
	s, err := sitefile.Load(r.files.Path)
	if err == nil && r.twin != "" {
		s, err = twin.New(s, r.record.Options)
	}
	r.site = s
	return err
}

// writeSiteDirectory writes the site directory, unless it exists, and loads the site. An existing directory
// says which hosts there are now.
func (r *restoreRun) writeSiteDirectory(ctx context.Context) error {
	dir := r.o.Dir
	switch {
	case dir != "":
	case r.twin != "" && len(r.manifest.Hosts) == 0:
		dir = filepath.Join(r.Session.Dirs.Site(r.key()), "site")
	default:
		dir = r.manifest.Site
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	r.files = &backup.SiteDir{From: r.from, Manifest: r.manifest, Path: dir}
	r.Session.Twin = ""
	at, err := r.files.Stage(ctx)
	if err != nil {
		return err
	}
	r.Session.SiteDir = at
	if at != dir {
		r.laid = at
	} else if r.other = r.files.Check(ctx); r.other != nil && !problem.Is(r.other, problem.Usage) {
		return r.other
	}
	if r.site, err = sitefile.Load(at); err != nil && r.other != nil {
		return r.other // it is the directory of no site
	}
	if err == nil && r.site.Name != r.manifest.Site {
		err = problem.New(problem.Refused,
			"this is a backup of site %s, but the directory belongs to site %s; nothing was done",
			r.manifest.Site, r.site.Name).At(dir).Try("name another directory with --dir")
	}
	if err == nil && r.twin != "" {
		err = r.asTwin(ctx)
	}
	return err
}

// observeHosts observes the hosts that are not left out.
func (r *restoreRun) observeHosts(ctx context.Context) (seen []observe.Host, err error) {
	if r.fleet, err = r.Session.Hosts(ctx, r.site); err != nil {
		return nil, err
	}
	return r.fleet.Observe(ctx)
}

// isUnderWay reports whether a restore of this backup has changed something already and must be
// completed by the hosts that have a part of it.
func (r *restoreRun) isUnderWay(seen []observe.Host) (going bool, err error) {
	for i := range seen {
		part := seen[i].Restoring
		if part == nil || !part.Going {
			continue
		}
		if part.ID != r.id {
			return false, problem.New(problem.Left, "another restore of %s was interrupted", r.key()).At("host "+seen[i].Name).
				Try("orrery restore %s", part.From)
		}
		going = true
	}
	return going, nil
}

// askConsent returns an error if the restore would replace existing data without the caller's consent.
func (r *restoreRun) askConsent(ctx context.Context, seen []observe.Host) error {
	if r.other != nil && len(r.manifest.Hosts) == 0 {
		return r.other
	}
	if r.other != nil {
		r.notice("the site directory %s differs from the one in the backup and is not changed", r.Session.SiteDir)
	}
	var err error
	if r.homes, err = newPlacement(r.site, r.manifest, r.fleet, seen); err != nil {
		return err
	}
	if err := r.excludeNodes(ctx, seen); err != nil {
		return err
	}
	nodes, volumes := 0, 0
	for i := range seen {
		nodes, volumes = nodes+len(seen[i].Nodes), volumes+len(seen[i].Volumes)
	}
	if r.was = nodes+volumes > 0 || r.known && r.record.Volumes != r.initialContent(); r.was {
		existing := fmt.Sprintf("%s and %s of %s", humanize.Plural(nodes, "node"), humanize.Plural(volumes, "volume"),
			r.key())
		if !r.o.Replace {
			return problem.New(problem.Refused, "the hosts already have %s; nothing was done", existing).
				Try("restore a twin beside it with --to NAME, or replace it with --replace")
		}
		why := fmt.Sprintf("The hosts already have %s. Their data would be deleted permanently.", existing)
		if missing := r.manifest.Missing(); len(missing) > 0 {
			why += fmt.Sprintf(" The backup has no data of host %s, which was left out.", humanize.List(missing, 12))
		}
		_, err := r.Session.Confirmer.Ask(control.Question{About: control.Replace, Site: r.site.Name, Why: why})
		if err != nil {
			return err
		}
		if _, err := r.Session.AskProduction(r.site, why); err != nil {
			return err
		}
	}
	var outside []string
	if r.twin == "" {
		outside = r.homes.outsideDirs()
	}
	if !r.was && r.o.Replace && len(outside) > 0 {
		why := fmt.Sprintf("The contents of these directories would be deleted permanently: %s.", humanize.List(outside, 100))
		_, err := r.Session.Confirmer.Ask(control.Question{About: control.Replace, Site: r.site.Name, Why: why})
		if err != nil {
			return err
		}
	}
	if len(outside) > 0 {
		why := fmt.Sprintf("Volumes in the backup would go to directories outside %s: %s.", r.Session.Dirs.State,
			humanize.List(outside, 100))
		_, err := r.Session.Confirmer.Ask(control.Question{About: control.Paths, Site: r.site.Name, Why: why})
		if err != nil {
			return problem.New(problem.Refused,
				"volumes in the backup would go to directories outside %s: %s; nothing was done", r.Session.Dirs.State,
				humanize.List(outside, 8)).
				Try("type %s when asked, or use --yes-paths %s", r.site.Name, r.site.Name)
		}
	}
	r.reportUnplaced()
	return nil
}

// stageParts makes all hosts stage their parts. If one fails, all parts are removed, and nothing was
// changed.
func (r *restoreRun) stageParts(ctx context.Context) error {
	var err error
	if r.releases, err = r.liveReleases(ctx); err != nil {
		return err
	}
	watch := r.Session.Watcher.Bytes("restore")
	defer watch.Close()
	shelf, err := r.snapshotsToSend(vault.NewPieces(r.from))
	if err != nil {
		return err
	}
	until, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	var first error
	lacked := make([]*ferry.StageReport, len(r.fleet.All))
	_ = r.fleet.ForEach(func(i int, h *apply.HostClient) error {
		lot, err := shelf.Of(h.Name)
		if err == nil {
			lacked[i], err = stageOn(until, h, r.partFor(h, lot.Trees), lot, watch.Add)
		}
		if err != nil {
			once.Do(func() { first = err })
			cancel()
		}
		return nil
	})
	if first != nil {
		if ctx.Err() != nil {
			first = problem.New(problem.Interrupted, "interrupted; nothing was put in place").At(r.title)
		}
		drop := func(_ int, h *apply.HostClient) error {
			_, err := h.Backups.AdvanceRestore(context.WithoutCancel(ctx), r.id, backup.StepDrop)
			return err
		}
		_ = r.fleet.ForEach(drop) // the next restore removes what is left
		return first
	}
	var builds []string
	for i, laid := range lacked {
		builds = append(builds, laid.Builds...)
		for what, n := range laid.Lacked {
			r.notice("not restored, because host %s does not accept them: %s (%s)", r.fleet.All[i].Name, sanitize.Line(what),
				humanize.Plural(n, "file"))
		}
	}
	r.reportDistrusted(builds)
	return nil
}

// stageOn sends one host its part, which the host stages.
func stageOn(ctx context.Context, h *apply.HostClient, p *ferry.RestorePart, from backup.Contents,
	saw func(int64)) (laid *ferry.StageReport, err error) {
	send := func(way io.ReadWriter) (err error) {
		laid, err = ferry.SendRestore(ctx, p, from, saw, way)
		return err
	}
	err = treesync.Pipe(ctx, send, func(way io.ReadWriter) error { return h.Backups.Receive(ctx, way) })
	return laid, err
}

// completeRestore completes a restore after all hosts have staged their parts.
func (r *restoreRun) completeRestore(ctx context.Context) (*control.Restored, error) {
	var names []string
	if r.manifest.Partial {
		names = slices.DeleteFunc(nodeNames(r.manifest), func(name string) bool {
			_, declared := r.site.Node(name)
			return !declared
		})
	}
	_, _, err := sites.Up(ctx, r.Session, r.site, names, sites.UpOptions{Parallel: r.o.Parallel, Backup: r.id})
	if err != nil {
		return nil, err
	}
	return &control.Restored{Site: r.site, Title: r.title, Dir: r.Session.SiteDir, Nodes: names}, nil
}
