package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/screen"
	"orrery/internal/cli/speech"
	"orrery/internal/control/nodes"
	"orrery/internal/site"
)

func (a *app) cpVerb() *cobra.Command {
	o := copying{parallel: 4}
	c := &cobra.Command{
		Use:   "cp SOURCE... DESTINATION",
		Short: "Copy files and directories to, from and between nodes",
		Long: `Copies files, directories and links, with their modes and times; NODE:PATH names a path in a node. Files copied into a node belong to root there. Files copied to this host belong to you, without set-user-ID and set-group-ID. Devices and named pipes are skipped and reported. A destination that ends in / is a directory, and is created if it is missing.

SELECTOR:PATH copies to each of several nodes, or from each of them into a directory NODE below the destination. The exit status is 100 + the number of nodes that failed (at most 200).`,
		Example: "  orrery cp portal:/var/log/dpkg.log .\n  orrery cp table.csv db:/tmp/\n  orrery cp role=receptor:/var/log/daemon.log logs",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.Allowed(); err != nil {
				return err
			}
			s, err := a.Load()
			if err != nil {
				return err
			}
			return a.copy(c.Context(), s, args[:len(args)-1], args[len(args)-1], &o)
		},
	}
	f := c.Flags()
	f.IntVar(&o.parallel, "parallel", o.parallel, "how many nodes at once, at most")
	f.DurationVar(&o.timeout, "timeout", 0, "give up on a node after this time (default: never)")
	f.BoolVar(&o.json, "json", false, "print how it ended with each node, as a list in JSON")
	a.releaseFlag(c)
	return c
}

// copying says how is copied.
type copying struct {
	parallel int
	timeout  time.Duration
	json     bool
}

func (a *app) copy(ctx context.Context, s *site.Site, sources []string, destination string, o *copying) error {
	c, err := nodes.NewCopying(ctx, &a.Session, s, sources, destination)
	if err != nil {
		return err
	}
	c.Parallel, c.Timeout = o.parallel, o.timeout
	show := screen.NewMeter(a.err, "copied")
	defer show.Close()
	if c.Nodes == nil || !o.json && !c.Several() {
		return c.Once(ctx, show.Add)
	}
	var list nodes.Speech = speech.Prefixed(a.out, a.err, c.Nodes, false)
	if o.json {
		list = speech.Reported(a.out)
	}
	endings, err := c.Each(ctx, list, show.Add)
	if err != nil {
		return err
	}
	return speech.Tally(a.err, endings)
}
