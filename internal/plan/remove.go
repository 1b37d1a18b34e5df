package plan

import (
	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

// removeNode plans the removal of a node and returns the last step. A node whose data outlives it
// shuts down in order first. Any other node's data is removed with it, so it is not shut down
// first.
func (d *planBuilder) removeNode(h *observe.Host, n *observe.Node, why string, needs ...int) int {
	saves := n.Runs() && n.KeepsData()
	needs = append(needs, d.settled[n.Name]...)
	if saves {
		needs = []int{d.stop(h, n, why, needs...)}
	}
	destroy := d.add(Step{
		Kind: DestroyNode, Host: h.Name, Subject: n.Name, Reason: why, Disturbs: []string{n.Name}, Needs: needs, Old: &n.Node,
	})
	if n.Runs() && !saves {
		d.frees.addNode(h, &n.Node, destroy)
	}
	d.frees[idClaim(h.Name, &n.Node)] = destroy
	d.frees[nameClaim(&n.Node)] = destroy
	return destroy
}

// stop plans the end of a running node, in the way that the goal's Ending asks for.
func (d *planBuilder) stop(h *observe.Host, n *observe.Node, why string, needs ...int) int {
	step := d.add(Step{
		Kind: d.goal.Ending.Kind(), Host: h.Name, Subject: n.Name, Reason: why, Disturbs: []string{n.Name}, Needs: needs,
		Old: &n.Node, Undo: "start", Timeout: d.goal.Ending.Timeout,
	})
	d.frees.addNode(h, &n.Node, step)
	return step
}

func (d *planBuilder) removeNetwork(h *observe.Host, n *spec.Network, why string, needs []int) int {
	return d.add(Step{
		Kind: RemoveNetwork, Host: h.Name, Subject: n.Name, Reason: why, Needs: needs, Network: n,
		Undo: "make network " + n.Name,
	})
}

// forgetNames plans to remove a host's names file, after the host's last node is removed.
func (d *planBuilder) forgetNames(h *observe.Host, why string, needs []int) int {
	return d.add(Step{Kind: ForgetNames, Host: h.Name, Subject: h.Name, Reason: why, Needs: needs})
}
