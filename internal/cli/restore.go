package cli

import (
	"context"
	"fmt"

	"orrery/internal/control"

	"github.com/spf13/cobra"
)

// restoreOptions are those of `orrery restore`.
type restoreOptions struct {
	control.RestoreOptions
	node  string   // which alone is laid down
	files []string // NODE:PATH, which alone are
}

func (a *app) restoreVerb() *cobra.Command {
	var o restoreOptions
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
			return a.restore(c.Context(), args[0], o.RestoreOptions)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Dir, "dir", "", "where the site `directory` goes (default: one with the site's name; of a twin: with its state)")
	f.StringArrayVar(&o.files, "file", nil, "only this file or directory, as `NODE:PATH`, into the current directory or --dir; may be repeated")
	f.StringVar(&o.node, "node", "", "only what the node of this `name` has, into a new directory: ./NAME or --dir")
	f.StringVar(&o.To, "to", "", "restore a twin of that `name`")
	f.BoolVar(&o.Replace, "replace", false, "the site that is on this host goes, with its data (asks for its name)")
	f.BoolVar(&o.TrustLayers, "trust-layers", false, "use the layers in the backup, which you made, instead of building them from their recipes")
	a.consent.flag(c, control.Paths, "the `name` of the site whose volumes come back to directories that its site file names, given instead of asked for")
	a.consent.flag(c, control.Replace, "the `name` of the site whose data goes, given instead of asked for")
	f.StringVar(&o.Identity, "secrets-identity", "", "decrypt the secrets with the secret key of age in this `file`")
	f.StringVar(&o.Passphrase, "secrets-passphrase-file", "", "decrypt the secrets with the passphrase in this `file`")
	f.IntVar(&o.Parallel, "parallel", control.DefaultParallel(), "most steps under way at once")
	a.productionFlag(c)
	return c
}

func (a *app) restore(ctx context.Context, text string, o control.RestoreOptions) error {
	r, err := a.Restore(ctx, text, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s: restored from %s, into %s.\n\n", r.Site.Key(), r.Title, r.Dir)
	b := a.another()
	b.SiteDir, b.Twin = r.Dir, r.Site.Twin
	return b.status(ctx, r.Site, r.Nodes)
}
