package screen

import (
	"fmt"
	"io"
	"strings"

	"orrery/internal/plan"
	"orrery/internal/plan/brief"
	"orrery/internal/text/humanize"
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

// Plan prints the summary of a plan: what it does to which nodes, why, and what is lost.
func Plan(w io.Writer, p *plan.Plan) {
	defer printWarnings(w, p)
	if isEmpty(w, p) {
		return
	}
	lines := brief.Lines(p)
	for _, l := range lines {
		kind := Good
		switch {
		case l.Lost != "":
			kind = Bad
		case l.Effect != "":
			kind = Warn
		}
		Paint(w, fmt.Sprintf("%-9s", l.Verb), kind)
		fmt.Fprintf(w, "  %s\n", l)
	}
	fmt.Fprintln(w)
	if n := len(p.Batches); n > 0 {
		fmt.Fprintf(w, "Batches: %d, of up to %s; each begins when all nodes before it are healthy.\n", n,
			humanize.Plural(largestBatch(p), "node"))
	}
	if total := brief.Total(lines); total != "" {
		fmt.Fprintf(w, "%s; ", total)
	}
	fmt.Fprintf(w, "%s (orrery plan -v shows them).", humanize.Plural(len(p.Steps), "step"))
	printDisturbed(w, p)
}

func largestBatch(p *plan.Plan) (most int) {
	for _, nodes := range p.Batches {
		most = max(most, len(nodes))
	}
	return most
}

// isEmpty prints that there is nothing to do, if that is so.
func isEmpty(w io.Writer, p *plan.Plan) bool {
	if p.Empty() {
		fmt.Fprintf(w, "%s: nothing to do.\n", p.Site)
	}
	return p.Empty()
}

func printWarnings(w io.Writer, p *plan.Plan) {
	for _, warning := range p.Warnings {
		fmt.Fprintf(w, "Warning: %s.\n", warning)
	}
}

// Steps prints a plan: every step with its reason, the nodes that it disturbs, and how it is undone.
func Steps(w io.Writer, p *plan.Plan) {
	defer printWarnings(w, p)
	if isEmpty(w, p) {
		return
	}
	for _, s := range p.Steps {
		fmt.Fprintf(w, "%4d  ", s.N+1)
		Paint(w, fmt.Sprintf("%-10s", s.Kind.Verb()), styleOf(s.Kind))
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
	printDisturbed(w, p)
}

// printDisturbed ends the last line of a plan with the nodes that it disturbs.
func printDisturbed(w io.Writer, p *plan.Plan) {
	if disturbed := p.DisturbedNodes(); len(disturbed) > 0 {
		fmt.Fprintf(w, " Disturbed: %s.", humanize.List(disturbed, 12))
	}
	fmt.Fprintln(w)
}

func countsInWords(p *plan.Plan) string {
	counts := map[string]int{}
	var verbs []string
	for _, s := range p.Steps {
		if counts[s.Kind.Verb()]++; counts[s.Kind.Verb()] == 1 {
			verbs = append(verbs, s.Kind.Verb())
		}
	}
	for i, verb := range verbs {
		verbs[i] = fmt.Sprintf("%d %s", counts[verb], verb)
	}
	return strings.Join(verbs, ", ")
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
