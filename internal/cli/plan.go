package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"orrery/internal/cli/screen"
	"orrery/internal/control"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/problem"
)

func (a *app) planVerb() *cobra.Command {
	var o control.PreviewOptions
	c := &cobra.Command{
		Use:   "plan [SELECTOR...]",
		Short: "Show what up would do, and why, without doing it",
		Long: `Shows what "orrery up" would do: every step in order, with its reason, the nodes that it disturbs and how it is undone.
With --probe it also looks into the running nodes and reports drift: services that do not run, files that are gone or changed, health checks
that fail now.
The exit status is 0 if there is nothing to do and 10 if there is.`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.preview(c.Context(), args, o)
		},
	}
	c.Flags().BoolVar(&o.Probe, "probe", false, "look for drift in the running nodes")
	c.Flags().BoolVar(&o.Down, "down", false, "show what down would do instead")
	c.Flags().BoolVar(&o.Volumes, "volumes", false, "with --down: also delete persistent data")
	c.MarkFlagsMutuallyExclusive("probe", "down")
	batchFlag(c, &o.Batch)
	return withJSON(c, "print JSON")
}

// preview shows what up or down would do.
func (a *app) preview(ctx context.Context, selectors []string, o control.PreviewOptions) error {
	p, err := a.Preview(ctx, selectors, o)
	if err != nil {
		return err
	}
	err = a.answer(planJSON(p), func() {
		printPlan(a.out, p)
		tellOrphans(a.out, p.Orphans)
	})
	if err == nil && !p.Empty() {
		err = problem.Status(problem.Changes)
	}
	return err
}

func planJSON(p *plan.Plan) any {
	if p.Batches == nil {
		p.Batches = [][]string{}
	}
	if p.Orphans == nil {
		p.Orphans = []plan.Orphan{}
	}
	return map[string]any{
		"site": p.Site, "steps": p.Steps, "batches": p.Batches, "counts": p.Counts(), "disturbs": p.Disturbed(), "orphans": p.Orphans,
	}
}

// tellOrphans names the volumes that no node uses any more.
func tellOrphans(w io.Writer, orphans []plan.Orphan) {
	for _, o := range orphans {
		if o.Unexpected() {
			fmt.Fprintf(w, "Note: %s.\n", o)
		}
	}
}

// colours tell at a glance what a step does to what is there: makes, changes, ends.
func colour(k plan.Kind) color.Attribute {
	switch k {
	case plan.DestroyNode, plan.StopNode, plan.KillNode, plan.RemoveNetwork, plan.RemoveVolume, plan.ForgetNames:
		return color.FgRed
	case plan.ReplaceNode, plan.ReshapeNode, plan.LimitNode, plan.ConfigureNode, plan.MendNode:
		return color.FgYellow
	}
	return color.FgGreen
}

func printPlan(w io.Writer, p *plan.Plan) {
	if p.Empty() {
		fmt.Fprintf(w, "%s: nothing to do.\n", p.Site)
		return
	}
	for _, s := range p.Steps {
		fmt.Fprintf(w, "%4d  ", s.N+1)
		screen.Paint(w, fmt.Sprintf("%-10s", s.Kind), colour(s.Kind))
		fmt.Fprintf(w, " %s: %s", s.Title(), s.Reason)
		if len(s.Disturbs) > 0 {
			fmt.Fprintf(w, " (disturbs %s)", strings.Join(s.Disturbs, ", "))
		}
		fmt.Fprintln(w)
		for _, d := range s.Drift {
			fmt.Fprintf(w, "      %s\n", d)
		}
		if s.Undo != "" {
			fmt.Fprint(w, "      ")
			screen.Paint(w, "undo: "+s.Undo, color.Faint)
			fmt.Fprintln(w)
		}
	}
	printBatches(w, p)
	fmt.Fprintf(w, "\n%s: %s.", phrase.Count(len(p.Steps), "step"), countsInWords(p))
	if disturbed := p.Disturbed(); len(disturbed) > 0 {
		fmt.Fprintf(w, " Disturbed: %s.", phrase.List(disturbed, 12))
	}
	fmt.Fprintln(w)
}

func countsInWords(p *plan.Plan) string {
	counts := p.Counts()
	var kinds []plan.Kind
	for _, s := range p.Steps {
		if !slices.Contains(kinds, s.Kind) {
			kinds = append(kinds, s.Kind)
		}
	}
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = fmt.Sprintf("%d %s", counts[k], k)
	}
	return strings.Join(words, ", ")
}

// printBatches tells in which order the nodes of a plan are disturbed.
func printBatches(w io.Writer, p *plan.Plan) {
	if len(p.Batches) == 0 {
		return
	}
	fmt.Fprint(w, "\nBatches, each begun when the nodes of those before are healthy:\n")
	for n, nodes := range p.Batches {
		fmt.Fprintf(w, "%4d  %s\n", n+1, strings.Join(nodes, ", "))
	}
}
