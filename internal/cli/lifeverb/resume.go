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
		Use:   "resume",
		Short: "Bring every site up again that was up on this host (after a reboot)",
		Long: `Brings up again every site and twin that was up on this host and was not taken down. Twins that have expired meanwhile are destroyed.
Of a site on several hosts, it starts the nodes of this host that are as they were when the site was last changed; it needs neither the others nor the site directory.
A release that was on trial is watched again; if its time is over, the nodes return to the former release.`,
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
