package dataverb

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/backups"
	"orrery/internal/problem"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
)

// restoreOptions are the flags of `orrery restore`.
type restoreOptions struct {
	control.RestoreOptions
	node  string   // restore only this node
	files []string // restore only these files, as NODE:PATH
}

// Restore returns the command `orrery restore`.
func Restore(call *verb.Call) *cobra.Command {
	var o restoreOptions
	c := &cobra.Command{
		Use:   "restore FILE|DIR[@ID]",
		Short: "Restore a site from a backup, on any host",
		Long: `Reads the whole backup and compares it with its digests before it changes
anything. Then it restores the site directory, the volumes and what the nodes
had written, builds missing layers, brings the nodes up and waits until they
are healthy. Without --dir, the site directory is named after the site; that of
a twin is stored with the twin's state.

Orrery does not trust a backup: it checks names in it, and writes only where
this command says. But it brings up the site in the backup, and the author of a
site file decides what root does on this host. If you did not write it, read it
first. Layers in the backup are used only with --trust-layers, because other
sites on this host would use them too.

With --file or --node, it extracts single files, or the data of one node, into
the current directory, ./NAME or --dir, and does not change the site. With
--node and --replace, it replaces the current data of the node, including its
own volumes, with that in the backup. The current data is kept until the node
is healthy, and put back if it does not become healthy.

Secrets that are not in the backup, or for which no key is given, are generated
anew. A site that is already on this host is not changed, except with
--replace, or with --to, which restores a twin beside it.

On several hosts, all of them must answer. If a host is left out (--without),
only nodes that are now on the others are restored.`,
		Example: "  orrery restore /srv/backups --dir /srv/karoo\n  orrery restore karoo.orrery --to yesterday\n  orrery restore /srv/backups --file db:/srv/data/ledger --dir /root/found\n  orrery restore /srv/backups --node db --replace",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if o.node != "" && o.Replace {
				return replaceNode(call.Session, call.Output, c, args[0], o)
			}
			if o.node != "" || len(o.files) > 0 {
				return extract(call.Session, call.Output, c, args[0], o)
			}
			return restoreSite(c.Context(), call.Session, call.Out, args[0], o.RestoreOptions)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Dir, "dir", "",
		"write to this `directory` (default: named after the site)")
	f.StringArrayVar(&o.files, "file", nil,
		"extract only this file or directory, `NODE:PATH` (repeatable)")
	f.StringVar(&o.node, "node", "",
		"restore only the data of the node with this `name`")
	f.StringVar(&o.To, "to", "", "restore a twin with this `name`")
	f.BoolVar(&o.Replace, "replace", false,
		"replace the data of the site or of the --node (asks first)")
	f.BoolVar(&o.TrustLayers, "trust-layers", false,
		"use the layers in the backup (only if you made it)")
	call.AgreeFlag(c, control.Paths,
		"the site's `name`, to write to paths of volumes without asking")
	call.AgreeFlag(c, control.Replace, "the site's `name`, to delete its data without asking")
	f.StringVar(&o.Identity, "secrets-identity", "", "decrypt secrets with the age secret key in this `file`")
	f.StringVar(&o.Passphrase, "secrets-passphrase-file", "", "decrypt secrets with the passphrase in this `file`")
	verb.ParallelFlag(c, &o.Parallel)
	call.WithoutFlag(c)
	call.ProductionFlag(c)
	return c
}

func restoreSite(ctx context.Context, session *control.Session, out io.Writer, text string,
	o control.RestoreOptions) error {
	r, err := backups.Restore(ctx, session, text, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: restored from %s, into %s.\n\n", r.Site.Key(), r.Title, r.Dir)
	session.SiteDir, session.Twin = r.Dir, r.Site.Twin
	return verb.ShowNodes(ctx, session, out, r.Site, r.Nodes)
}

// extract extracts single files, or what one node has, from a backup.
func extract(session *control.Session, to verb.Output, c *cobra.Command, text string, o restoreOptions) error {
	if o.node != "" && len(o.files) > 0 {
		return problem.New(problem.Usage, "--file and --node cannot be used together").Try("leave one of them out")
	}
	if err := refuseFlags(c, "applies to a whole site, not to --file and --node", "to", "replace", "trust-layers",
		"yes-paths", "yes-replace", "yes-production",
		"secrets-identity", "secrets-passphrase-file", "parallel", "without"); err != nil {
		return err
	}
	done, err := backups.Extract(c.Context(), session, text,
		backups.ExtractOptions{Node: o.node, Files: o.files, Dir: o.Dir})
	if done == nil {
		return err
	}
	for _, at := range done.Paths {
		fmt.Fprintf(to.Out, "%s\n", sanitize.Line(at))
	}
	if len(done.Without) > 0 {
		fmt.Fprintf(to.Err, "orrery: not in the backup: volume %s\n", humanize.List(done.Without, 8))
	}
	printMissingAttributes(to.Err, done.Lacked)
	return err
}

// replaceNode restores one node of the site from a backup, in place of its current state.
func replaceNode(session *control.Session, to verb.Output, c *cobra.Command, text string, o restoreOptions) error {
	if err := refuseFlags(c, "does not apply to --node and --replace, which restore one node",
		"dir", "file", "to", "trust-layers", "yes-paths", "secrets-identity", "secrets-passphrase-file",
		"parallel"); err != nil {
		return err
	}
	done, err := backups.ReplaceNode(c.Context(), session, text, o.node)
	if done == nil {
		return err
	}
	printMissingAttributes(to.Err, done.Lacked)
	if err == nil {
		printRestored(to.Out, done.Site, done.Restored)
	}
	return err
}

// refuseFlags returns an error with the reason why, if one of the flags is set.
func refuseFlags(c *cobra.Command, why string, flags ...string) error {
	for _, flag := range flags {
		if c.Flags().Changed(flag) {
			return problem.New(problem.Usage, "--%s %s", flag, why).Try("leave it out")
		}
	}
	return nil
}

// printMissingAttributes prints which attributes were not restored, because the target file system does not
// support them.
func printMissingAttributes(errs io.Writer, lacked map[string]int) {
	for what, n := range lacked {
		fmt.Fprintf(errs, "orrery: not restored, because this host does not accept them: %s (%s)\n", sanitize.Line(what),
			humanize.Plural(n, "file"))
	}
}
