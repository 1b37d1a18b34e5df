package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"orrery/internal/apply/local"
	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/engine"
	"orrery/internal/hook"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// backupOptions are those of `orrery backup`.
type backupOptions struct {
	layers, snapshots bool
	keys              []string
	passphrase        string
	json              bool
}

func (a *app) backupVerb() *cobra.Command {
	var o backupOptions
	c := &cobra.Command{
		Use:   "backup [SELECTOR...] FILE|DIR",
		Short: "Back up a site, or some of its nodes, to a file or directory",
		Long: `Backs up the site directory, what each node has written, and all volumes except those on NFS, as they are at one moment. The nodes pause only
while the last changes are read. If the target is an existing directory, or its name ends with "/", it holds many backups and stores what they have
in common only once. Otherwise the target is a single file. If a run was killed, run the same command to resume.

Generated secrets and SSH host keys are included only if you say how to encrypt them.`,
		Example: "  orrery backup /srv/backups/\n  orrery backup group=system karoo.orrery --with-layers --secrets-passphrase-file phrase",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			last := len(args) - 1
			return a.backup(c.Context(), args[:last], args[last], o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.layers, "with-layers", false, "include the layers, so that restoring need not build any")
	f.BoolVar(&o.snapshots, "snapshots", false, "include the snapshots of the site")
	f.StringArrayVar(&o.keys, "secrets-to", nil, "encrypt secrets for this public `key` of age; may be repeated")
	f.StringVar(&o.passphrase, "secrets-passphrase-file", "", "encrypt secrets with the passphrase in this `file`")
	f.BoolVar(&o.json, "json", false, "print JSON")
	c.AddCommand(a.backupList(), a.backupVerify(), a.backupRepair(), a.backupPrune())
	return c
}

func (a *app) backup(ctx context.Context, selectors []string, target string, o backupOptions) error {
	if err := control.NeedRoot(); err != nil {
		return err
	}
	s, h, chosen, err := a.Target(selectors)
	if err != nil {
		return err
	}
	if len(chosen) == len(s.Nodes) {
		chosen = nil // it is the whole site, by whatever name
	}
	dir, err := a.Absolute()
	if err != nil {
		return err
	}
	to, err := vault.Recipients(o.keys, o.passphrase)
	if err != nil {
		return err
	}
	absolute, err := filepath.Abs(target)
	if err != nil {
		return err
	}
	set := &backup.Set{
		Site: s, Dir: dir, Dirs: a.Dirs, Engines: h.Engines, Store: h.Store, Nodes: chosen, Target: absolute,
		WithLayers: o.layers, WithSnapshots: o.snapshots,
	}
	if err := set.Check(); err != nil {
		return err
	}
	into, err := vault.Write(target)
	if err != nil {
		return err
	}
	defer into.Close() //nolint:errcheck // what is written has been synced by then
	return a.take(ctx, s, h, set, into, to, o)
}

func (a *app) take(ctx context.Context, s *site.Site, h *local.Host, set *backup.Set, into vault.Vault, to []age.Recipient, o backupOptions) error {
	began := time.Now()
	shown := newMeter(a.err, s.Name)
	b := &backup.Backup{
		Set: set, Into: into, To: to, By: Version, Who: control.Who(), Saw: shown.Add, Still: func(ctx context.Context, do func(context.Context) error) (time.Duration, error) {
			return a.still(ctx, s, h, set, do)
		},
	}
	r, err := b.Run(ctx)
	shown.Close()
	if err != nil {
		return err
	}
	a.Tell(s, hook.Event{Event: site.BackupDone, Result: "done", Backup: backupName(into, r.ID), Bytes: r.Manifest.Bytes()})
	a.tellRotten(into, &r.Checked)
	if o.json {
		return printJSON(a.out, backupLine(into.Where(), r.ID, r.Manifest, r))
	}
	took := time.Since(began)
	fmt.Fprintf(a.out, "%s: %s and %s, %s, in %s (%.1f s; %s read, %s added).\n", s.Name, phrase.Count(len(r.Manifest.Nodes), "node"),
		phrase.Count(countVolumes(r.Manifest), "volume"), sizeText(r.Manifest.Bytes()), into.Where(), took.Seconds(), sizeText(r.Read), sizeText(r.Wrote))
	a.tellChecked(&r.Checked)
	if r.Manifest.Pause > 0 {
		fmt.Fprintf(a.out, "The nodes stood still for %s.\n", milliseconds(r.Manifest.Pause))
	}
	for _, why := range r.Manifest.Left {
		fmt.Fprintf(a.out, "Not in it: %s.\n", why)
	}
	fmt.Fprintf(a.out, "\n  orrery restore %s   put it back, on any host\n", backupName(into, r.ID))
	return nil
}

// tellChecked says how much of what a backup has in common with earlier ones was looked at.
func (a *app) tellChecked(c *vault.Checked) {
	if c.Blocks > 0 {
		fmt.Fprintf(a.out, "It shares %s (%s) with earlier backups; %d of them (%s) were read again and are whole.\n",
			phrase.Count(c.Blocks, "block"), sizeText(c.Bytes), c.Read, sizeText(c.Reread))
	}
	if len(c.Rotten) > 0 {
		fmt.Fprintln(a.out, "What this backup needs of damaged blocks was written again.")
	}
}

// tellRotten names what is damaged in a directory of backups.
func (a *app) tellRotten(into vault.Vault, c *vault.Checked) {
	const most = 8
	for i := range c.Rotten[:min(len(c.Rotten), most)] {
		fmt.Fprintf(a.err, "orrery: damaged in %s: %s (%v)\n", into.Where(), c.Rotten[i].Name(), c.Rotten[i].Why)
	}
	if more := len(c.Rotten) - most; more > 0 {
		fmt.Fprintf(a.err, "orrery: damaged in %s: %s more\n", into.Where(), phrase.Count(more, "block"))
	}
	for _, id := range c.Manifests {
		fmt.Fprintf(a.err, "orrery: damaged in %s: the manifest of backup %s, which is lost with it\n", into.Where(), id)
	}
	if len(c.Rotten) > 0 && !c.Anew {
		fmt.Fprintf(a.err, "orrery: earlier backups may lack something of it: orrery backup repair %s\n", into.Where())
	}
}

// chosenName is how a user names a backup.
func backupName(v vault.Vault, id string) string {
	if _, one := v.(*vault.Archive); one {
		return v.Where()
	}
	return v.Where() + "@" + id
}

func countVolumes(m *vault.Manifest) int {
	n := 0
	for _, t := range m.Trees {
		if t.Kind == vault.VolumeTree {
			n++
		}
	}
	return n
}

// still does something while all who write into a set stand still and nobody else changes the site. Whoever does so now is waited for.
func (a *app) still(ctx context.Context, s *site.Site, h *local.Host, set *backup.Set, do func(context.Context) error) (time.Duration, error) {
	var pause time.Duration
	act := func(*control.Account) error {
		writers, err := set.Writers(ctx)
		if err != nil {
			return err
		}
		if len(writers) == 0 {
			return do(ctx)
		}
		letGo, err := a.Guard(writers...)
		if err != nil {
			return err
		}
		stood, err := engine.Still(ctx, h.Engines, writers, do)
		if err == nil {
			letGo() // else it lets go on whoever does not, as soon as we end
		}
		pause = stood.Long
		return err
	}
	for deadline := time.Now().Add(lockPatience); ; {
		err := a.Locked(ctx, s, h, act)
		if problem.Exit(err) != int(problem.Locked) || time.Now().After(deadline) {
			return pause, err
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// lockPatience is how long a backup waits for somebody who changes the site.
const lockPatience = 2 * time.Minute

// A listed backup is one line of `orrery backup ls`.
type listed struct {
	ID      string    `json:"id"`
	Where   string    `json:"where"`
	Site    string    `json:"site"`
	Time    time.Time `json:"time"`
	Host    string    `json:"host"`
	Who     string    `json:"who"`
	Nodes   int       `json:"nodes"`
	Volumes int       `json:"volumes"`
	Bytes   int64     `json:"bytes"`
	Layers  bool      `json:"with_layers"`
	Secrets bool      `json:"with_secrets"`
	Left    []string  `json:"left,omitempty"`
	Pause   float64   `json:"pause_seconds"`
	Read    int64     `json:"read,omitempty"`
	Added   int64     `json:"added,omitempty"`
	Shared  int64     `json:"shared,omitempty"`  // bytes of blocks that are in earlier backups, too
	Checked int64     `json:"checked,omitempty"` // bytes of these that were read again and compared
	Damaged []string  `json:"damaged,omitempty"` // blocks and manifests
}

func backupLine(where, id string, m *vault.Manifest, r *backup.Report) listed {
	l := listed{
		ID: id, Where: where, Site: m.Key, Time: m.Time, Host: m.Host, Who: m.Who, Nodes: len(m.Nodes), Volumes: countVolumes(m), Bytes: m.Bytes(),
		Secrets: m.Secrets != nil, Left: m.Left, Pause: m.Pause,
	}
	for _, t := range m.Trees {
		l.Layers = l.Layers || t.Kind == vault.LayerTree
	}
	if r != nil {
		l.Read, l.Added, l.Shared, l.Checked = r.Read, r.Wrote, r.Checked.Bytes, r.Checked.Reread
		for i := range r.Checked.Rotten {
			l.Damaged = append(l.Damaged, r.Checked.Rotten[i].Name())
		}
		for _, id := range r.Checked.Manifests {
			l.Damaged = append(l.Damaged, "backups/"+id+".json")
		}
	}
	return l
}

func (a *app) backupList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ls FILE|DIR", Short: "List the backups in a directory, or what is in a file", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			v, _, err := vault.Open(args[0])
			if err != nil {
				return err
			}
			defer v.Close() //nolint:errcheck // it was only read
			ids, err := v.Backups()
			if err != nil {
				return err
			}
			var all []listed
			for _, id := range ids {
				m, err := v.Manifest(id)
				if err != nil {
					return err
				}
				all = append(all, backupLine(v.Where(), id, m, nil))
			}
			if asJSON {
				return printJSON(a.out, all)
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "ID\tSITE\tTIME\tHOST\tWHO\tNODES\tVOLUMES\tSIZE\tWITH")
			for _, l := range all {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", l.ID, l.Site, l.Time.Local().Format(time.DateTime), l.Host, l.Who, l.Nodes,
					l.Volumes, sizeText(l.Bytes), l.with())
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// with says what a backup has that others have not.
func (l listed) with() string {
	var has []string
	if l.Layers {
		has = append(has, "layers")
	}
	if l.Secrets {
		has = append(has, "secrets")
	}
	if len(has) == 0 {
		return "-"
	}
	return strings.Join(has, ", ")
}

func (a *app) backupVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify FILE|DIR[@ID]", Short: "Read a backup, or all of a directory, and compare it with its digests", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			v, id, err := vault.Open(args[0])
			if err != nil {
				return err
			}
			defer v.Close() //nolint:errcheck // it was only read
			ids := []string{id}
			if id == "" {
				ids, err = v.Backups()
			} else {
				ids[0], _, err = vault.Choose(v, id)
			}
			if err != nil {
				return err
			}
			var failed error
			for _, id := range ids { // one that is damaged does not hide how the others are
				err := a.verify(c.Context(), v, id)
				if c.Context().Err() != nil {
					return err
				}
				if err != nil {
					fmt.Fprintf(a.out, "%s is damaged.\n", id)
					printError(a.err, err)
					failed = err
					continue
				}
				fmt.Fprintf(a.out, "%s is whole.\n", id)
			}
			return said(failed)
		},
	}
}

func (a *app) verify(ctx context.Context, v vault.Vault, id string) error {
	shown := newMeter(a.err, "verify")
	defer shown.Close()
	return v.Verify(ctx, id, shown.Add)
}

func (a *app) backupPrune() *cobra.Command {
	keep := 0
	c := &cobra.Command{
		Use: "prune DIR", Short: "Remove all but the last backups of each site from a directory", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := writable(args[0])
			if err != nil {
				return err
			}
			defer r.Close() //nolint:errcheck // what is removed is removed
			gone, freed, err := r.Prune(keep)
			for _, id := range gone {
				fmt.Fprintf(a.out, "%s\n", id)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s removed, %s freed.\n", phrase.Count(len(gone), "backup"), sizeText(freed))
			return nil
		},
	}
	c.Flags().IntVar(&keep, "keep", 0, "how many backups of each site to keep (at least 1)")
	return c
}
