// Package boot plans what a host does on its own after a reboot.
//
// It is a package of its own because it is pure, unlike control/unattended, which carries out what
// it plans.
package boot

import (
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/kernel"
	"orrery/internal/plan/pack"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Plan plans what each host does after a reboot with what it has now. It makes the host's networks,
// writes the names, and starts the live nodes with autostart, as they are. It creates, removes and
// changes nothing. It skips nodes whose roles have not been applied completely, since those need an
// up.
func Plan(s *site.Site, hosts []observe.Host) *plan.Plan {
	p := &plan.Plan{Site: s.Key()}
	for i := range hosts {
		if !hosts[i].Unknown {
			planHost(p, s.Key(), &hosts[i])
		}
	}
	return p
}

func planHost(p *plan.Plan, key string, h *observe.Host) {
	add := func(s plan.Step) int {
		s.N, s.Host, s.Reason = len(p.Steps), h.Name, "reboot"
		p.Steps = append(p.Steps, &s)
		return s.N
	}
	var ground []int
	for _, n := range sortNetworks(h.Networks) {
		if n.Site == key {
			ground = append(ground, add(plan.Step{Kind: plan.MakeNetwork, Subject: n.Name, Network: &n.Network,
				Needs: slices.Clone(ground)}))
		}
	}
	if h.Names != "" {
		ground = append(ground, add(plan.Step{Kind: plan.WriteNames, Subject: h.Name, Names: h.Names}))
	}
	for i := range h.Nodes {
		n := &h.Nodes[i]
		if !Starts(n) {
			continue
		}
		start := add(plan.Step{Kind: plan.StartNode, Subject: n.Name, Node: &n.Node, Old: &n.Node,
			Needs: slices.Clone(ground)})
		if n.Config.Health != "" {
			add(plan.Step{Kind: plan.CheckNode, Subject: n.Name, Node: &n.Node, Old: &n.Node, Needs: []int{start}})
		}
	}
}

// Starts reports whether a node starts automatically after a reboot of its host.
func Starts(n *observe.Node) bool {
	return !n.Staged && n.Autostart && n.Configured && n.State != observe.Broken
}

// sortNetworks returns networks with the veth pairs first, since other networks may use them.
func sortNetworks(all []observe.Network) []observe.Network {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b observe.Network) int { return rank(&a) - rank(&b) })
	return all
}

func rank(n *observe.Network) int {
	if n.Kind == spec.VethPair {
		return 0
	}
	return 1
}

// prepareStep is the number of the step that sets the kernel settings, which no plan contains.
const prepareStep = -1

// ValidSteps returns the steps of a host that are still correct and possible, in their order. A node
// starts only if it has not changed. others are the names of nodes that may have changed in an
// interrupted run.
func ValidSteps(steps []*plan.Step, h *observe.Host) (todo []*plan.Step, others []string) {
	nodes := map[int]*observe.Node{}
	for i := range h.Nodes {
		nodes[h.Nodes[i].ID] = &h.Nodes[i]
	}
	known, starting := map[int]bool{}, map[int]bool{}
	var forward bool
	for _, s := range steps {
		forward = forward || s.Kind == plan.MakeNetwork && (s.Network.NAT || s.Network.Publish+s.Network.Answers != "")
	}
	if lacks := kernel.Missing(h.Settings, forward); len(lacks) > 0 && len(steps) > 0 {
		todo = append(todo, &plan.Step{N: prepareStep, Kind: plan.PrepareHost, Host: steps[0].Host, Subject: steps[0].Host,
			Reason: "reboot", Settings: lacks})
	}
	for _, s := range steps {
		switch s.Kind {
		case plan.MakeNetwork:
			i := slices.IndexFunc(h.Networks, func(n observe.Network) bool {
				return n.Site == s.Network.Site &&
					n.Name == s.Network.Name
			})
			if i >= 0 && len(h.Networks[i].Drift) == 0 {
				continue
			}
			one := *s
			if i >= 0 {
				one.OldNetwork = &h.Networks[i].Network
			}
			one.Needs = append(slices.Clone(s.Needs), prepareStep)
			todo = append(todo, &one)
		case plan.WriteNames:
			if h.Names != s.Names {
				one := *s
				one.OldNames = h.Names
				todo = append(todo, &one)
			}
		case plan.StartNode:
			n := nodes[s.Node.ID]
			if n == nil || !Starts(n) || spec.Digest(n.Node) != spec.Digest(*s.Node) {
				continue
			}
			known[n.ID] = true
			if n.State == observe.Stopped {
				starting[n.ID] = true
				one := *s
				one.Needs = append(slices.Clone(s.Needs), prepareStep)
				todo = append(todo, &one)
			}
		case plan.CheckNode:
			if starting[s.Node.ID] {
				todo = append(todo, s)
			}
		}
	}
	for i := range h.Nodes {
		if n := &h.Nodes[i]; !n.Staged && n.Autostart && !known[n.ID] && !n.Runs() {
			others = append(others, n.Name)
		}
	}
	return pack.Subplan(todo), others
}
