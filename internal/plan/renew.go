package plan

import (
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Renew plans that running virtual machines switch to the programs that their hosts have now,
// without a reboot. It plans this for the selected machines or, if none are selected, for all whose
// programs were replaced.
func Renew(s *site.Site, hosts []observe.Host, goal Goal) (*Plan, error) {
	hosts = inScope(s, hosts)
	d := newPlanBuilder(s, hosts, goal)
	for i := range hosts {
		h := &hosts[i]
		var before []int // one at a time: each needs its memory twice
		for j := range h.Nodes {
			n := &h.Nodes[j]
			if !goal.selects(n.Name) || goal.Nodes == nil && len(n.Outdated) == 0 {
				continue
			}
			if err := renewable(h, n); err != nil {
				return nil, err
			}
			before = []int{d.add(Step{Kind: RenewNode, Host: h.Name, Subject: n.Name, Reason: renewReason(n), Node: &n.Node,
				Old: &n.Node, Needs: before})}
		}
	}
	return d.sorted(), nil
}

// renewable returns an error if a node cannot be renewed.
func renewable(h *observe.Host, n *observe.Node) error {
	can := h.Engines[n.Engine]
	switch {
	case can.Accel == "" && can.Stuck == observe.Missing{}:
		return problem.New(problem.Unable,
			"node %s is not a virtual machine: no program of the host runs it", n.Name).At(h.Name).
			Try("choose other nodes")
	case can.Stuck != observe.Missing{}:
		return problem.New(problem.Unable, "node %s cannot switch to another QEMU: %s", n.Name, can.Stuck.What).
			At(h.Name).
			Try("%s", can.Stuck.Cure)
	case n.State != observe.Running:
		return problem.New(problem.Surprise, "node %s is not running: it is %s", n.Name, n.State).At(h.Name).
			Try("orrery start %s", n.Name)
	}
	return nil
}

func renewReason(n *observe.Node) string {
	if len(n.Outdated) == 0 {
		return "requested"
	}
	return "replaced on the host: " + humanize.List(n.Outdated, 2)
}
