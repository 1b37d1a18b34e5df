// Package verb has what the verbs of the command line share. It has the call of a verb with its
// session and streams, checks of who may run it on which site, common flags, and common output.
package verb

import (
	"context"

	"github.com/spf13/cobra"

	"orrery/internal/cli/value"
	"orrery/internal/control"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// run is the function of a verb.
type run = func(c *cobra.Command, args []string) error

// WithSite returns a run that loads the site and passes it to do.
func (call *Call) WithSite(do siteRun) run { return withLoaded((*control.Session).Load, call, do) }

// WithRunning is like WithSite, for verbs that only need the nodes that exist. While the site
// directory has mistakes or is missing, do gets the site as this host has recorded it.
func (call *Call) WithRunning(do siteRun) run {
	return withLoaded((*control.Session).LoadRunning, call, do)
}

// siteRun is the function of a verb for a site.
type siteRun = func(ctx context.Context, s *site.Site, args []string) error

func withLoaded(load func(*control.Session) (*site.Site, error), call *Call, do siteRun) run {
	return func(c *cobra.Command, args []string) error {
		s, err := load(call.Session)
		if err != nil {
			return err
		}
		return do(c.Context(), s, args)
	}
}

// AsRoot returns a run that fails unless the caller is root.
func (call *Call) AsRoot(do run) run {
	return func(c *cobra.Command, args []string) error {
		if err := call.Session.Allowed(); err != nil {
			return err
		}
		return do(c, args)
	}
}

// WithHosts returns a run that loads the site and passes it to do. It fails if nodes of the site may
// be on this machine and the caller is not root.
func (call *Call) WithHosts(do siteRun) run { return call.WithSite(allowedOnHosts(call, do)) }

// WithRunningHosts is like WithHosts, but loads the site as WithRunning does.
func (call *Call) WithRunningHosts(do siteRun) run { return call.WithRunning(allowedOnHosts(call, do)) }

func allowedOnHosts(call *Call, do siteRun) siteRun {
	return func(ctx context.Context, s *site.Site, args []string) error {
		if err := call.Session.CheckAllowedOn(s); err != nil {
			return err
		}
		return do(ctx, s, args)
	}
}

// Group returns a verb that only has subcommands.
func Group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: RequireSubcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(verbs...)
	return c
}

// RequireSubcommand is the argument check of a command that only has subcommands. It returns an error if the
// first word is none of them.
func RequireSubcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var verbs []string
	for _, verb := range c.Commands() {
		verbs = append(verbs, verb.Name())
	}
	p := problem.New(problem.Usage, "%s has no verb %q", c.CommandPath(), args[0])
	if !c.HasParent() {
		p = problem.New(problem.Usage, "unknown verb %q", args[0])
		if meant := synonyms(args[0]); meant != "" {
			return p.Try("orrery calls it %s", meant)
		}
	}
	if near := problem.Suggest(args[0], verbs); near != "" {
		return p.Try("did you mean %s?", near)
	}
	return p.Try("%s --help lists the verbs", c.CommandPath())
}

// WithJSON adds the flag --json to a verb.
func WithJSON(c *cobra.Command, usage string) *cobra.Command {
	c.Flags().Bool("json", false, usage)
	return c
}

// ParallelFlag adds the flag --parallel to a verb.
func ParallelFlag(c *cobra.Command, parallel *int) {
	c.Flags().IntVar(parallel, "parallel", control.DefaultParallel(), "maximum number of steps at once")
}

// BatchFlag adds the flag --batch to a verb.
func BatchFlag(c *cobra.Command, b *site.Batch) {
	c.Flags().Var((*value.Batch)(b), "batch",
		"nodes per batch: 2, 25% (default: as groups say, else all)")
}

// ReleaseFlag adds the flag --release to a verb.
func (call *Call) ReleaseFlag(c *cobra.Command) {
	c.Flags().Var((*value.Release)(&call.Session.Release), "release",
		"use the nodes of this release `number` (default: live ones)")
}

// WithoutFlag adds the flag --without to a verb.
func (call *Call) WithoutFlag(c *cobra.Command) {
	c.Flags().StringSliceVar(&call.Session.Without, "without", nil,
		"leave this `host` out, and treat its state as unknown")
}
