package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/control/backups"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/visible"
)

// pick takes single files, or what one node has, out of a backup.
func (a *app) pick(c *cobra.Command, text string, o restoreOptions) error {
	if o.node != "" && len(o.files) > 0 {
		return problem.New(problem.Usage, "--file and --node are two ways to take something out of a backup").Try("leave one of them out")
	}
	for _, flag := range []string{"to", "replace", "trust-layers", "yes-paths", "yes-replace", "yes-production", "secrets-identity", "secrets-passphrase-file", "parallel"} {
		if c.Flags().Changed(flag) {
			return problem.New(problem.Usage, "--%s is about a site, and --file and --node touch none", flag).Try("leave it out")
		}
	}
	done, err := backups.Pick(c.Context(), &a.Session, text, backups.PickOptions{Node: o.node, Files: o.files, Dir: o.Dir})
	if done == nil {
		return err
	}
	for _, at := range done.Paths {
		fmt.Fprintf(a.out, "%s\n", visible.Line(at))
	}
	if len(done.Without) > 0 {
		fmt.Fprintf(a.err, "orrery: not in the backup: volume %s\n", phrase.List(done.Without, 8))
	}
	a.tellLacked(done.Lacked)
	return err
}

// replaceNode puts one node of the site back as it was backed up, in the place of what it is now.
func (a *app) replaceNode(c *cobra.Command, text string, o restoreOptions) error {
	for _, flag := range []string{"dir", "file", "to", "trust-layers", "yes-paths", "secrets-identity", "secrets-passphrase-file", "parallel"} {
		if c.Flags().Changed(flag) {
			return problem.New(problem.Usage, "--%s has nothing to do with --node and --replace, which put one node back in its place", flag).Try("leave it out")
		}
	}
	done, err := backups.ReplaceNode(c.Context(), &a.Session, text, o.node)
	if done == nil {
		return err
	}
	a.tellLacked(done.Lacked)
	if err == nil {
		a.tellPutBack(done.Site, done.Restored)
	}
	return err
}

// tellLacked says what does not come back because of where it goes.
func (a *app) tellLacked(lacked map[string]int) {
	for what, n := range lacked {
		fmt.Fprintf(a.err, "orrery: not restored, because they are not taken here: %s (%s)\n", visible.Line(what), phrase.Count(n, "file"))
	}
}
