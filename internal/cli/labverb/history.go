// Package labverb has the verbs of `orrery lab` that read bundles: many at once, or one to verify
// that it follows from its samples.
package labverb

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/control"
	"orrery/internal/control/lab"
)

// History is `lab history`, on behalf of a session; it prints to out.
func History(session *control.Session, out io.Writer) *cobra.Command {
	var html, experiment string
	c := &cobra.Command{
		Use:   "history [BUNDLE…]",
		Short: "Show what many runs measured, one after another",
		Long: `Shows each figure run by run: of the bare host its value, of each setting what it was of bare in the same run. Without bundles, these are
the last runs of one experiment on this host.`,
		Example: "  orrery lab history --html history.html\n  orrery lab history before-1 before-2 after-1 after-2",
		RunE: func(_ *cobra.Command, args []string) error {
			h, err := lab.History(session, args, experiment)
			if err != nil {
				return err
			}
			if html != "" {
				if err := lab.WritePage(h, html); err != nil {
					return err
				}
			}
			if reply.Wanted(out) {
				return h.JSON(reply.Result(out))
			}
			err = h.Text(out)
			if html != "" {
				fmt.Fprintf(out, "\n  %s\n", html)
			}
			return err
		},
	}
	c.Flags().StringVar(&html, "html", "", "also write a page with plots to that `file`")
	c.Flags().StringVar(&experiment, "of", "", "take the runs of this `experiment` (default: of the last run)")
	c.Flags().Bool("json", false, "print JSON")
	return c
}
