package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site/selector"
	"orrery/internal/site/spec"
)

func (a *app) imageBuild() *cobra.Command {
	return &cobra.Command{
		Use:   "build [SELECTOR...]",
		Short: "Build the layers that nodes need before you run up, and print their digests",
		RunE: func(c *cobra.Command, args []string) error {
			s, h, chosen, err := a.Target(args)
			if err != nil {
				return err
			}
			j := &control.Job{Session: &a.Session, Site: s, Host: h, Plan: func(hosts []observe.Host) (*plan.Plan, error) {
				return plan.Build(s, hosts, plan.Goal{Releases: h.Releases, Nodes: chosen})
			}}
			if _, err := j.Run(c.Context()); err != nil {
				return err
			}
			nodes, err := selector.Select(s, args...)
			if err != nil {
				return err
			}
			maker, printed := spec.NewMaker(s), map[string]bool{}
			for _, n := range nodes {
				for _, l := range maker.Layers(n) {
					if !printed[l.Digest] {
						printed[l.Digest] = true
						fmt.Fprintf(a.out, "%s  %s\n", l.Digest, l.Title)
					}
				}
			}
			return nil
		},
	}
}
