package lifeverb

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/sites"
	"orrery/internal/plan"
	"orrery/internal/problem"
)

// Plan returns the command `orrery plan`.
func Plan(call *verb.Call) *cobra.Command {
	var o sites.PreviewOptions
	steps, changes := false, false
	c := &cobra.Command{
		Use:   "plan [SELECTOR...]",
		Short: "Show what up would do, and why, without doing it",
		Example: `  orrery plan
  orrery plan -v role=portal
  orrery plan --diff`,
		Long: `Shows what "orrery up" would do: one line for each group of alike nodes, with
the reason and what is lost. With --steps it shows every step in order, with
its reason, the nodes that it disturbs and how it is undone. With --diff it
first shows which settings, files and packages of nodes change, and how; values
of secrets are never shown. With --probe it also looks into the running nodes
and reports drift: stopped services, missing or changed files, and failing
health checks.

The exit status is 0 if there is nothing to do, and otherwise 10.`,
		RunE: func(c *cobra.Command, args []string) error {
			show := screen.Plan
			if steps {
				show = screen.Steps
			}
			if changes {
				return previewChanges(c.Context(), call.Session, call.Out, args, o, show)
			}
			return preview(c.Context(), call.Session, call.Out, args, o, show)
		},
	}
	c.Flags().BoolVarP(&steps, "steps", "v", false, "show every step, and how it is undone")
	c.Flags().BoolVar(&changes, "diff", false, "show how settings, files and packages change")
	c.Flags().BoolVar(&o.Probe, "probe", false, "look for drift in the running nodes")
	c.Flags().BoolVar(&o.Down, "down", false, "show what down would do instead")
	c.Flags().BoolVar(&o.Volumes, "volumes", false, "with --down: also delete volumes")
	c.MarkFlagsMutuallyExclusive("probe", "down")
	verb.BatchFlag(c, &o.Batch)
	call.WithoutFlag(c)
	return verb.WithJSON(c, "print JSON")
}

// preview prints what up or down would do.
func preview(ctx context.Context, session *control.Session, out io.Writer, selectors []string,
	o sites.PreviewOptions, show func(io.Writer, *plan.Plan)) error {
	p, err := sites.Preview(ctx, session, selectors, o)
	if err != nil {
		return err
	}
	return showPlan(out, p, show)
}

// previewChanges prints how up or down would change nodes and networks, and then the plan.
func previewChanges(ctx context.Context, session *control.Session, out io.Writer, selectors []string,
	o sites.PreviewOptions, show func(io.Writer, *plan.Plan)) error {
	p, changes, err := sites.Changes(ctx, session, selectors, o)
	if err != nil {
		return err
	}
	return showPlan(out, p, func(out io.Writer, p *plan.Plan) {
		screen.Changes(out, changes)
		show(out, p)
	})
}

func showPlan(out io.Writer, p *plan.Plan, show func(io.Writer, *plan.Plan)) error {
	err := reply.Answer(out, screen.PlanJSON(p), func() {
		show(out, p)
		screen.Orphans(out, p.Orphans)
	})
	if err == nil && !p.Empty() {
		err = problem.Status(problem.Changes)
	}
	return err
}
