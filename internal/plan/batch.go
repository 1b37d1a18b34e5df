package plan

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/site"
)

// A chain is the steps of one node that is there.
type chain struct {
	node   string
	steps  []int // in order
	rolls  bool  // it runs, and is disturbed
	bounds []*bound
	batch  int // 0: before the first
}

// gate returns where the chain waits for the batches before: at the first step that disturbs its node.
func (c *chain) gate(steps []*Step) int {
	return slices.IndexFunc(c.steps, func(n int) bool { return len(steps[n].Disturbs) > 0 })
}

func (c *chain) last() int { return c.steps[len(c.steps)-1] }

// A bound holds for some nodes together: no batch has more of them.
type bound struct {
	most int
	in   map[int]int // batch -> how many of them are in it
	full int         // all batches up to this one are
}

// roll puts the running nodes that a plan disturbs into batches, if anything bounds how many of
// them may be away at once. Each batch begins when all nodes of those before have come to the end
// of their steps, which is a check of their health; so the first failure leaves later batches
// untouched. The first begins when every layer is built, and when the nodes of which there are
// bounds and that are away already are back. It reports whether there are batches.
func roll(d *draft) bool {
	if d.site.Stage != 0 || !bounded(d.site, d.goal) {
		return false
	}
	rolled, away := chains(d)
	if !slices.ContainsFunc(rolled, func(c *chain) bool { return len(c.bounds) > 0 }) {
		return false
	}
	a := assign(d.Steps, rolled, away)
	if a.batches == 1 && !crowded(rolled, 1) && !slices.ContainsFunc(away, func(c *chain) bool { return c.batch == 0 }) {
		return false
	}
	d.Batches = make([][]string, a.batches)
	for _, c := range rolled {
		d.Batches[c.batch-1] = append(d.Batches[c.batch-1], c.node)
	}
	begin := make([]int, a.batches+1) // batch -> the step with which it begins
	for batch := 1; batch <= a.batches; batch++ {
		begin[batch] = beginBatch(d, batch, rolled, away)
	}
	for _, c := range rolled {
		for _, n := range c.steps {
			d.Steps[n].Batch = c.batch
		}
		gate := d.Steps[c.steps[c.gate(d.Steps)]]
		gate.Needs = append(gate.Needs, begin[c.batch])
	}
	return true
}

// bounded reports whether a bound is declared or asked for.
func bounded(s *site.Site, goal Goal) bool {
	if goal.Batch != (site.Batch{}) {
		return goal.Batch.Bounds()
	}
	return slices.ContainsFunc(s.Groups, func(g site.Group) bool { return g.Batch.Bounds() })
}

// chains returns the nodes that batches are made of, and those of which there are bounds and that
// are away, or not known to be healthy, already. Among the former those come first that are not
// known to be healthy: what failed before fails again before another node is touched.
func chains(d *draft) (rolled, away []*chain) {
	nodes := map[string]*observe.Node{}
	for _, h := range d.hosts {
		for i := range h.Nodes {
			if n := &h.Nodes[i]; nodes[n.Name] == nil || n.State == observe.Running {
				nodes[n.Name] = n
			}
		}
	}
	all := map[string]*chain{}
	names := d.concerned(func(n *site.Node) bool { return nodes[n.Name] != nil })
	for _, name := range names {
		all[name] = &chain{node: name}
	}
	for n, s := range d.Steps {
		if c := all[s.Subject]; c != nil && s.ForNode() {
			c.steps = append(c.steps, n)
		}
	}
	var sick []*chain
	for _, name := range names {
		c := all[name]
		if len(c.steps) == 0 {
			continue
		}
		node := nodes[c.node]
		failing := func(d observe.Drift) bool { return d.How == observe.Failing }
		proven := node.Configured && node.Proven == node.Config.Health && !slices.ContainsFunc(node.Drift, failing)
		c.rolls = node.State == observe.Running && c.gate(d.Steps) >= 0
		switch {
		case !c.rolls:
			away = append(away, c)
		case proven:
			rolled = append(rolled, c)
		default:
			sick = append(sick, c)
		}
	}
	rolled = append(sick, rolled...)
	bind(d.site, d.goal, all, len(rolled))
	away = slices.DeleteFunc(away, func(c *chain) bool { return len(c.bounds) == 0 })
	return rolled, away
}

// bind sets the bounds of chains: that of the goal for all of them, else those of their groups. A share is
// one of the nodes that are disturbed, or of the nodes of the group.
func bind(s *site.Site, goal Goal, all map[string]*chain, disturbed int) {
	if goal.Batch.Bounds() {
		b := &bound{most: goal.Batch.Of(disturbed), in: map[int]int{}}
		for _, c := range all {
			c.bounds = append(c.bounds, b)
		}
		return
	}
	for _, g := range s.Groups {
		if !g.Batch.Bounds() {
			continue
		}
		b := &bound{most: g.Batch.Of(len(g.Nodes)), in: map[int]int{}}
		for _, name := range g.Nodes {
			if c := all[name]; c != nil {
				c.bounds = append(c.bounds, b)
			}
		}
	}
}

// beginBatch adds the step for which the nodes of a batch wait.
func beginBatch(d *draft, batch int, rolled, away []*chain) int {
	s := Step{
		Kind: BeginBatch, Host: d.Steps[rolled[0].steps[0]].Host, Subject: fmt.Sprintf("%d of %d", batch, len(d.Batches)),
		Reason: strings.Join(d.Batches[batch-1], ", "),
	}
	for _, c := range slices.Concat(rolled, away) {
		if c.batch == batch-1 {
			s.Needs = append(s.Needs, c.last())
		}
		if batch == 1 && c.rolls {
			s.Needs = append(s.Needs, layersUnder(d.Steps, c)...)
		}
	}
	if crowded(rolled, batch) {
		s.Reason += ": more than a batch shall have, which cannot change without one another"
	}
	return d.add(s)
}

// crowded reports whether a batch has more nodes than it shall have.
func crowded(rolled []*chain, batch int) bool {
	return slices.ContainsFunc(rolled, func(c *chain) bool {
		return c.batch == batch && slices.ContainsFunc(c.bounds, func(b *bound) bool { return b.in[batch] > b.most })
	})
}

// layersUnder returns the steps that build or fetch what a node is to stand on.
func layersUnder(steps []*Step, c *chain) []int {
	var layers []int
	for _, n := range c.steps {
		for _, need := range steps[n].Needs {
			if k := steps[need].Kind; k == BuildLayer || k == FetchLayer {
				layers = append(layers, need)
			}
		}
	}
	return layers
}
