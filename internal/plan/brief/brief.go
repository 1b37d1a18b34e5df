// Package brief summarizes a plan for people: one line for each group of alike nodes, with the
// reason and what is lost.
package brief

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/plan"
	"orrery/internal/text/humanize"
)

// A Line is what a plan does to some things of one kind, for one reason.
type Line struct {
	Verb   string   // "create", "recreate", …
	Noun   string   // singular: "node", "network", …
	Names  []string // in the order of the plan
	Reason string
	Effect string // how it disturbs running nodes, or ""
	Lost   string // what is lost, or ""

	rank int
}

// maxNames is the maximum number of names in a line.
const maxNames = 8

// String returns the line without its verb: "nodes n1 and n2: role layer changed; …".
func (l *Line) String() string {
	text := l.Noun + " " + l.Names[0]
	switch {
	case len(l.Names) == 1:
	case l.Noun == layerNoun: // their names are long, and have commas
		text = humanize.Plural(len(l.Names), l.Noun)
	default:
		text = l.Noun + "s " + humanize.List(l.Names, maxNames)
	}
	if l.Reason != "" {
		text += ": " + l.Reason
	}
	for _, more := range []string{l.Effect, l.Lost} {
		if more != "" {
			text += "; " + more
		}
	}
	return text
}

// Lines returns the summary of a plan. What is lost comes first, and what is not about nodes comes
// last.
func Lines(p *plan.Plan) []*Line {
	var all []*Line
	found := map[string]*Line{}
	for _, s := range subjects(p) {
		l := s.line()
		if l == nil {
			continue
		}
		key := fmt.Sprintf("%q", []string{l.Verb, l.Noun, l.Reason, l.Effect, l.Lost})
		if found[key] == nil {
			found[key] = l
			all = append(all, l)
		} else if !slices.Contains(found[key].Names, l.Names[0]) {
			found[key].Names = append(found[key].Names, l.Names[0])
		}
	}
	slices.SortStableFunc(all, func(a, b *Line) int { return a.rank - b.rank })
	return all
}

// Losses returns those lines by which something is lost.
func Losses(all []*Line) []*Line {
	return slices.DeleteFunc(slices.Clone(all), func(l *Line) bool { return l.Lost == "" })
}

// maxLines is the maximum number of lines in a question.
const maxLines = 20

// Text returns lines with their verbs for a question, each after a line feed.
func Text(all []*Line) string {
	var b strings.Builder
	for i, l := range all {
		if i == maxLines {
			fmt.Fprintf(&b, "\n  and %s (orrery plan shows all)", humanize.Plural(len(all)-maxLines, "more line"))
			break
		}
		fmt.Fprintf(&b, "\n  %-9s  %s", l.Verb, l)
	}
	return b.String()
}

// Total returns how many nodes a summary creates, recreates and so on: "3 nodes to create, 1 to
// destroy". It returns "" if it is about no node.
func Total(all []*Line) string {
	var verbs []string
	counts := map[string]int{}
	for _, l := range all {
		if l.Noun != nodeNoun {
			continue
		}
		if counts[l.Verb] == 0 {
			verbs = append(verbs, l.Verb)
		}
		counts[l.Verb] += len(l.Names)
	}
	for i, verb := range verbs {
		if i == 0 {
			verbs[i] = humanize.Plural(counts[verb], nodeNoun) + " to " + verb
		} else {
			verbs[i] = fmt.Sprintf("%d to %s", counts[verb], verb)
		}
	}
	return strings.Join(verbs, ", ")
}

// A subject is something that a plan changes, with the steps about it.
type subject struct {
	name  string // of the node, or "" if it is not a node
	steps map[plan.Kind]*plan.Step
}

// subjects returns what a plan changes, in the order of the plan. All steps of a node are one
// subject, on whichever host they are. So are the steps that remove and create a network of a host.
func subjects(p *plan.Plan) []*subject {
	var all []*subject
	found := map[string]*subject{}
	for _, s := range p.Steps {
		key, name := fmt.Sprintf("%s %s %d", s.Kind, s.Host, s.N), ""
		switch {
		case s.ForNode():
			key, name = nodeKey(s)
		case s.Kind == plan.MakeNetwork || s.Kind == plan.RemoveNetwork:
			key = "network " + s.Host + " " + s.Subject
		}
		if found[key] == nil {
			found[key] = &subject{name, map[plan.Kind]*plan.Step{}}
			all = append(all, found[key])
		}
		found[key].steps[s.Kind] = s
	}
	return all
}

// nodeKey returns what distinguishes the node of a step from others, and its name for display. A node
// in quarantine has the same name as the live one.
func nodeKey(s *plan.Step) (key, name string) {
	n := s.Node
	if n == nil {
		n = s.Old
	}
	name = s.Subject
	if n.Staged {
		name = fmt.Sprintf("%s of release %d", s.Subject, n.Release)
	}
	return "node " + name, name
}

// line returns the line about the subject alone, or nil if it needs none.
func (s *subject) line() *Line {
	if s.name != "" {
		return s.nodeLine()
	}
	for _, step := range s.steps {
		return s.otherLine(step)
	}
	return nil
}

// has reports whether the plan has a step of one of these kinds for the subject.
func (s *subject) has(kinds ...plan.Kind) bool {
	return slices.ContainsFunc(kinds, func(k plan.Kind) bool { return s.steps[k] != nil })
}
