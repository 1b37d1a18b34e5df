package plan

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/site"
)

// A chain is the steps of one existing node.
type chain struct {
	node   string
	steps  []int // in order
	rolls  bool  // the node runs and is disturbed
	bounds []*bound
	batch  int // 0: before the first batch
}

// firstDisturbing returns the index of the first step that disturbs the node. There the chain waits for
// earlier batches.
func (c *chain) firstDisturbing(steps []*Step) int {
	return slices.IndexFunc(c.steps, func(n int) bool { return len(steps[n].Disturbs) > 0 })
}

func (c *chain) lastStep() int { return c.steps[len(c.steps)-1] }

// A bound limits how many of a set of nodes may be in one batch.
type bound struct {
	most int
	in   map[int]int // batch -> how many of the nodes are in it
	full int         // all batches up to this one are full
}

// assignBatches puts the running nodes that a plan disturbs into batches, if a bound limits how many of them
// may be away at once. It reports whether there are batches.
//
// Each batch begins when all nodes of earlier batches have finished their steps. The last step
// checks their health, so the first failure leaves later batches untouched. The first batch begins
// when every layer is built, and when the bounded nodes that are already away are back.
func assignBatches(d *planBuilder) bool {
	if d.site.Stage != 0 || !hasBounds(d.site, d.goal) {
		return false
	}
	rolled, away := chains(d)
	if !slices.ContainsFunc(rolled, func(c *chain) bool { return len(c.bounds) > 0 }) {
		return false
	}
	a := assign(d.Steps, rolled, away)
	if a.batches == 1 && !exceedsBounds(rolled, 1) &&
		!slices.ContainsFunc(away, func(c *chain) bool { return c.batch == 0 }) {
		return false
	}
	d.Batches = make([][]string, a.batches)
	for _, c := range rolled {
		d.Batches[c.batch-1] = append(d.Batches[c.batch-1], c.node)
	}
	begin := make([]int, a.batches+1) // batch -> its BeginBatch step
	for batch := 1; batch <= a.batches; batch++ {
		begin[batch] = addBatch(d, batch, rolled, away)
	}
	for _, c := range rolled {
		for _, n := range c.steps {
			d.Steps[n].Batch = c.batch
		}
		gate := d.Steps[c.steps[c.firstDisturbing(d.Steps)]]
		gate.Needs = append(gate.Needs, begin[c.batch])
	}
	return true
}

// hasBounds reports whether the goal or a group limits the nodes of a batch.
func hasBounds(s *site.Site, goal Goal) bool {
	if goal.Batch != (site.Batch{}) {
		return goal.Batch.IsLimited()
	}
	return slices.ContainsFunc(s.Groups, func(g site.Group) bool { return g.Batch.IsLimited() })
}

// chains returns two groups of nodes: rolled, which are put into batches, and away, which have
// limits and are already stopped or not known to be healthy. Nodes of rolled that are not known to be
// healthy come first, so that what failed before fails again before another node is touched.
func chains(d *planBuilder) (rolled, away []*chain) {
	nodes := map[string]*observe.Node{}
	for _, h := range d.hosts {
		for i := range h.Nodes {
			if n := &h.Nodes[i]; nodes[n.Name] == nil || n.State == observe.Running {
				nodes[n.Name] = n
			}
		}
	}
	all := map[string]*chain{}
	names := d.selectedNames(func(n *site.Node) bool { return nodes[n.Name] != nil })
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
		c.rolls = node.State == observe.Running && c.firstDisturbing(d.Steps) >= 0
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
	setBounds(d.site, d.goal, all, len(rolled))
	away = slices.DeleteFunc(away, func(c *chain) bool { return len(c.bounds) == 0 })
	return rolled, away
}

// setBounds sets the bounds of chains: the goal's bound for all of them, or else the bounds of their
// groups. A share counts the disturbed nodes for the goal, and the nodes of the group for a group.
func setBounds(s *site.Site, goal Goal, all map[string]*chain, disturbed int) {
	if goal.Batch.IsLimited() {
		b := &bound{most: goal.Batch.Size(disturbed), in: map[int]int{}}
		for _, c := range all {
			c.bounds = append(c.bounds, b)
		}
		return
	}
	for _, g := range s.Groups {
		if !g.Batch.IsLimited() {
			continue
		}
		b := &bound{most: g.Batch.Size(len(g.Nodes)), in: map[int]int{}}
		for _, name := range g.Nodes {
			if c := all[name]; c != nil {
				c.bounds = append(c.bounds, b)
			}
		}
	}
}

// addBatch adds the BeginBatch step for which the nodes of a batch wait.
func addBatch(d *planBuilder, batch int, rolled, away []*chain) int {
	s := Step{
		Kind: BeginBatch, Host: d.Steps[rolled[0].steps[0]].Host, Subject: fmt.Sprintf("%d of %d", batch, len(d.Batches)),
		Reason: strings.Join(d.Batches[batch-1], ", "),
	}
	for _, c := range slices.Concat(rolled, away) {
		if c.batch == batch-1 {
			s.Needs = append(s.Needs, c.lastStep())
		}
		if batch == 1 && c.rolls {
			s.Needs = append(s.Needs, layerSteps(d.Steps, c)...)
		}
	}
	if exceedsBounds(rolled, batch) {
		s.Reason += ": larger than a batch, because these must change together"
	}
	return d.add(s)
}

// exceedsBounds reports whether a batch has more nodes than a bound allows.
func exceedsBounds(rolled []*chain, batch int) bool {
	return slices.ContainsFunc(rolled, func(c *chain) bool {
		return c.batch == batch && slices.ContainsFunc(c.bounds, func(b *bound) bool { return b.in[batch] > b.most })
	})
}

// layerSteps returns the steps that build or fetch the layers of a node.
func layerSteps(steps []*Step, c *chain) []int {
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
