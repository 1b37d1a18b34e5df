package screen

import (
	"fmt"
	"io"
	"orrery/internal/plan"
	"orrery/internal/text/humanize"
	"slices"
	"strings"
)

// styleOf returns the style for what a step does to existing things: create, change or destroy.
func styleOf(k plan.Kind) Style {
	switch k {
	case plan.DestroyNode, plan.StopNode, plan.KillNode, plan.RemoveNetwork, plan.RemoveVolume, plan.ForgetNames:
		return Bad
	case plan.ReplaceNode, plan.ReshapeNode, plan.LimitNode, plan.ConfigureNode, plan.RepairNode:
		return Warn
	}
	return Good
}

// Plan prints a plan: every step with its reason, the nodes that it disturbs, and how it is undone.
func Plan(w io.Writer, p *plan.Plan) {
	defer func() {
		for _, warning := range p.Warnings {
			fmt.Fprintf(w, "Warning: %s.\n", warning)
		}
	}()
	if p.Empty() {
		fmt.Fprintf(w, "%s: nothing to do.\n", p.Site)
		return
	}
	for _, s := range p.Steps {
		fmt.Fprintf(w, "%4d  ", s.N+1)
		Paint(w, fmt.Sprintf("%-10s", s.Kind), styleOf(s.Kind))
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
			Paint(w, "undo: "+s.Undo, Faint)
			fmt.Fprintln(w)
		}
	}
	printBatches(w, p)
	fmt.Fprintf(w, "\n%s: %s.", humanize.Plural(len(p.Steps), "step"), countsInWords(p))
	if disturbed := p.DisturbedNodes(); len(disturbed) > 0 {
		fmt.Fprintf(w, " Disturbed: %s.", humanize.List(disturbed, 12))
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

// printBatches prints in which order the nodes of a plan are disturbed.
func printBatches(w io.Writer, p *plan.Plan) {
	if len(p.Batches) == 0 {
		return
	}
	fmt.Fprint(w, "\nBatches, each started when all nodes before it are healthy:\n")
	for n, nodes := range p.Batches {
		fmt.Fprintf(w, "%4d  %s\n", n+1, strings.Join(nodes, ", "))
	}
}
