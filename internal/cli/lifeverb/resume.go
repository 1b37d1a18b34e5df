package lifeverb

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/overdue"
	"orrery/internal/control/sites"
)

// Resume returns the command `orrery resume`.
func Resume(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:     "resume",
		Short:   "Bring up every site that was up on this host (after a reboot)",
		Example: "  orrery resume",
		Long: `Brings up every site and twin that was up on this host and was not taken down.
Twins that have expired are destroyed. For a site on several hosts, it starts
those nodes of this host that are still as the last change of the site left
them; it needs neither the other hosts nor the site directory.

Orrery watches a release on trial again; if the time of the trial is over, the
nodes return to the former release.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := overdue.ResumeExpiries(c.Context(), call.Session)
			keys, failed := overdue.ResumeHost(c.Context(), call.Session)
			err = errors.Join(err, failed)
			for _, m := range call.Session.Register().SitesUp() {
				if slices.Contains(keys, m.Key()) {
					continue
				}
				fmt.Fprintf(call.Out, "%s from %s\n", m.Key(), m.Dir)
				s, result, failed := sites.ResumeSite(c.Context(), call.Session, m)
				err = errors.Join(err, verb.PrintUp(c.Context(), call.Session, call.Out, s, nil, result, failed))
			}
			return err
		},
	}
}
