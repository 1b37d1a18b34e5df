package cli

import (
	"context"

	"github.com/spf13/cobra"

	"orrery/internal/cli/value"
	"orrery/internal/control"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// run is what a verb does.
type run = func(c *cobra.Command, args []string) error

// onSite is what a verb does with the site that is meant.
func (a *app) onSite(do func(ctx context.Context, s *site.Site, args []string) error) run {
	return func(c *cobra.Command, args []string) error {
		s, err := a.session.Load()
		if err != nil {
			return err
		}
		return do(c.Context(), s, args)
	}
}

// asRoot is what a verb does that is for root only.
func (a *app) asRoot(do run) run {
	return func(c *cobra.Command, args []string) error {
		if err := a.session.Allowed(); err != nil {
			return err
		}
		return do(c, args)
	}
}

// onHosts is what a verb does with nodes of the site that is meant, which is for root only where some may be on this machine.
func (a *app) onHosts(do func(ctx context.Context, s *site.Site, args []string) error) run {
	return a.onSite(func(ctx context.Context, s *site.Site, args []string) error {
		if err := a.session.AllowedOn(s); err != nil {
			return err
		}
		return do(ctx, s, args)
	})
}

// group returns a verb that has only others below it.
func group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: someVerb, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(verbs...)
	return c
}

// someVerb says, of a command that only has verbs below it, that a word is none of them.
func someVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var verbs []string
	for _, verb := range c.Commands() {
		verbs = append(verbs, verb.Name())
	}
	p := problem.New(problem.Usage, "%s has no verb %q", c.CommandPath(), args[0])
	if near := problem.Nearest(args[0], verbs); near != "" {
		return p.Try("did you mean %s?", near)
	}
	return p.Try("%s --help lists the verbs", c.CommandPath())
}

// withJSON says of a verb that its result can be had as JSON.
func withJSON(c *cobra.Command, usage string) *cobra.Command {
	c.Flags().Bool("json", false, usage)
	return c
}

// parallelFlag lets a verb be told how many steps are under way at once.
func parallelFlag(c *cobra.Command, parallel *int) {
	c.Flags().IntVar(parallel, "parallel", control.DefaultParallel(), "how many steps at once, at most")
}

// batchFlag lets a verb be told how many nodes are disturbed at once.
func batchFlag(c *cobra.Command, b *site.Batch) {
	c.Flags().Var((*value.Batch)(b), "batch", "disturb this many nodes at once, or this share of them (\"25%\"), and continue only when they are healthy\n(default: as groups say, else all at once)")
}

// releaseFlag lets a verb work with nodes of a release that is not live.
func (a *app) releaseFlag(c *cobra.Command) {
	c.Flags().Var((*value.Release)(&a.session.Release), "release", "use the nodes of this release `number`, live or in quarantine (default: the live nodes)")
}
