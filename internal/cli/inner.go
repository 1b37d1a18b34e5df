package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/apply"
	"orrery/internal/control/guard"
	"orrery/internal/hook"
	"orrery/internal/site"
)

// The verbs in this file are begun by Orrery itself, and not by its users.

// hookVerb tells the hooks of a site what waits to be told. It is begun by whoever has something to tell, who does not wait for it.
func (a *app) hookVerb() *cobra.Command {
	return &cobra.Command{
		Use: "hook SITE", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Tell the hooks of a site what waits to be told",
		RunE:  a.asRoot(func(c *cobra.Command, args []string) error { return hook.Deliver(c.Context(), a.Dirs, args[0]) }),
	}
}

// thawVerb guards nodes that stand still.
func (a *app) thawVerb() *cobra.Command {
	return &cobra.Command{
		Use: "thaw ENGINE/SITE/ID/NAME...", Hidden: true, Args: cobra.MinimumNArgs(1),
		Short: "Wait until the process that froze these nodes has ended, and let them go on if it did not",
		RunE:  func(c *cobra.Command, nodes []string) error { return guard.Thaw(c.Context(), a.Dirs, a.in, nodes) },
	}
}

// trialVerb watches over a trial that a former version has begun.
func (a *app) trialVerb() *cobra.Command {
	key := ""
	watch := a.onSite(func(ctx context.Context, s *site.Site, _ []string) error {
		return a.Unattended(s.Key()).Run(ctx, apply.OnTrial, "")
	})
	c := &cobra.Command{
		Use: "trial", Hidden: true, Args: cobra.NoArgs,
		Short: "Watch over the release that is on trial until it is confirmed or goes back",
		RunE: func(c *cobra.Command, args []string) error {
			if key != "" {
				return a.Unattended(key).Run(c.Context(), apply.OnTrial, "")
			}
			return watch(c, args)
		},
	}
	c.Flags().StringVar(&key, "key", "", "on this host of several: of the site that is known by this")
	return c
}

// hostRunVerb carries out what this host has planned for a trigger. It is begun by timers, and by whoever finds that nobody watches.
func (a *app) hostRunVerb() *cobra.Command {
	return &cobra.Command{
		Use: "host-run SITE TRIGGER [PART]", Hidden: true, Args: cobra.RangeArgs(2, 3),
		Short: "Do what this host has planned for a site, without its site directory",
		RunE: func(c *cobra.Command, args []string) error {
			return a.Unattended(args[0]).Run(c.Context(), args[1], strings.Join(args[2:], ""))
		},
	}
}
