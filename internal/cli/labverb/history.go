package labverb

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/verb"
	"orrery/internal/control/lab"
)

// history returns the command `lab history`.
func history(call *verb.Call) *cobra.Command {
	var html, experiment string
	c := &cobra.Command{
		Use:   "history [BUNDLE…]",
		Short: "Show what many runs measured, one after another",
		Long: `Shows each figure run by run: the value on the bare host, and for each setting
its ratio to the bare host in the same run. Without bundles, it shows the last
runs of one experiment on this host.`,
		Example: "  orrery lab history --html history.html\n  orrery lab history before-1 before-2 after-1 after-2",
		RunE: func(_ *cobra.Command, args []string) error {
			h, err := lab.History(call.Session, args, experiment)
			if err != nil {
				return err
			}
			if html != "" {
				if err := lab.WritePage(h, html); err != nil {
					return err
				}
			}
			if reply.IsJSON(call.Out) {
				return h.JSON(reply.Result(call.Out))
			}
			err = h.Text(call.Out)
			if html != "" {
				fmt.Fprintf(call.Out, "\n  %s\n", html)
			}
			return err
		},
	}
	c.Flags().StringVar(&html, "html", "", "also write a page with plots to this `file`")
	c.Flags().StringVar(&experiment, "of", "", "show the runs of this `experiment` (default: the last run's)")
	c.Flags().Bool("json", false, "print JSON")
	return c
}
