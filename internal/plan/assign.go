package plan

import (
	"slices"

	"orrery/internal/site/cycles"
)

// An assignment puts nodes into batches so that no node waits for a node of a later batch: for its
// health, its address or the network that it leaves. Nodes that wait for one another in a cycle
// change together. For this it visits the strongly connected components of the steps, in which the
// steps of one node count as one.
type assignment struct {
	all     []*Step
	batches int
	chainOf map[int]*chain // first of a node's united steps -> the node
	as      []int          // step -> the first of the steps united with it
	parts   map[int][]int  // first step -> all steps united with it

	earliest []int // step -> first batch in which a node that needs it can be
}

func assign(all []*Step, rolled, away []*chain) *assignment {
	a := &assignment{
		all: all, batches: 1, chainOf: map[int]*chain{}, as: make([]int, len(all)), parts: map[int][]int{},
		earliest: make([]int, len(all)),
	}
	for n := range a.as {
		a.as[n] = n
	}
	for _, c := range rolled {
		a.mergeSteps(c, c.steps[c.firstDisturbing(all):])
	}
	for _, c := range away {
		a.mergeSteps(c, c.steps)
	}
	var last []int
	for _, c := range slices.Concat(rolled, away) {
		last = append(last, a.as[c.lastStep()])
	}
	cycles.StronglyConnected(len(all), last, a.needs, a.assignCycle)
	return a
}

// mergeSteps makes several steps of a node count as one.
func (a *assignment) mergeSteps(c *chain, steps []int) {
	for _, n := range steps {
		a.as[n] = steps[0]
	}
	a.chainOf[steps[0]], a.parts[steps[0]] = c, steps
}

// needs returns what a step needs, or what all steps united with it need.
func (a *assignment) needs(first int) []int {
	parts := a.parts[first]
	if parts == nil {
		parts = []int{first}
	}
	var needs []int
	for _, part := range parts {
		for _, need := range a.all[part].Needs {
			if need = a.as[need]; need != first {
				needs = append(needs, need)
			}
		}
	}
	return needs
}

// assignCycle puts the nodes of a cycle of steps into a batch. Most cycles are a single step.
func (a *assignment) assignCycle(circle []int) {
	batch := 0
	var nodes []*chain
	for _, n := range circle {
		for _, need := range a.needs(n) {
			batch = max(batch, a.earliest[need])
		}
		if c := a.chainOf[n]; c != nil {
			nodes = append(nodes, c)
		}
	}
	if slices.ContainsFunc(nodes, func(c *chain) bool { return c.rolls }) {
		batch = a.earliestBatch(nodes, max(1, batch))
	}
	for _, c := range nodes {
		c.batch = batch
	}
	for _, n := range circle {
		a.earliest[n] = batch
	}
}

// earliestBatch returns the earliest batch that has room for nodes that change together. If they are more
// than any batch may have, they get an empty batch.
func (a *assignment) earliestBatch(nodes []*chain, batch int) int {
	wanted := map[*bound]int{}
	for _, c := range nodes {
		if c.rolls {
			for _, b := range c.bounds {
				wanted[b]++
				batch = max(batch, b.full+1)
			}
		}
	}
	for !fits(wanted, batch) {
		batch++
	}
	for b, more := range wanted {
		b.add(batch, more)
	}
	a.batches = max(a.batches, batch)
	return batch
}

func fits(wanted map[*bound]int, batch int) bool {
	for b, more := range wanted {
		if b.in[batch] > 0 && b.in[batch]+more > b.most {
			return false
		}
	}
	return true
}

func (b *bound) add(batch, more int) {
	b.in[batch] += more
	for b.in[b.full+1] >= b.most {
		b.full++
	}
}
