package plan

import (
	"fmt"
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan/place"
	"orrery/internal/plan/stand"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// A companion is a node of another release in quarantine that moves along with the live node: a
// staged release, or the former one. After the move, a switch or rollback finds both on one host.
type companion struct {
	nodeMove
	*stand.DeclaredNode
	came int // the step that receives it
}

// companions returns the companions of nodes that move, and checks that each can move.
func companions(
	b *planInput, hosts []observe.Host, before map[string]*observe.Host, moves map[string]string,
) (all []*companion, err error) {
	for i := range hosts {
		h := &hosts[i]
		for _, node := range h.Nodes {
			to := moves[node.Name]
			if !node.Staged || to == "" || to == h.Name || h.Unknown {
				continue
			}
			c := &companion{nodeMove: nodeMove{node: node.Name, has: node, from: h.Name, to: to}}
			if err := c.check(b, before[c.from], &h.Releases); err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// check returns an error if a companion cannot move, which prevents the whole move.
func (c *companion) check(b *planInput, from *observe.Host, r *observe.Releases) (err error) {
	release := site.ReleaseName(c.has.Release)
	no := func(cure, format string, args ...any) error {
		return problem.New(problem.Unable,
			"node %s cannot move to host %s: its release %s on host %s cannot move with it: %s",
			c.node, c.to, release, c.from, fmt.Sprintf(format, args...)).Try("%s", cure)
	}
	end := "orrery release prune --keep 0 first"
	if former, ok := r.Former[c.node]; ok && former == c.has.Release {
		end = fmt.Sprintf("orrery stage --release %s %s --give-up-rollback first", release, c.node)
		if former == 0 {
			end = "restore its former declaration in site.toml, or orrery rollback first"
		}
	}
	switch {
	case r.Trial != nil:
		return no("orrery confirm or orrery rollback first", "release %s is on trial", site.ReleaseName(r.Trial.Release))
	case r.Switch != nil:
		return no("orrery up finishes it", "a switch was interrupted")
	case c.has.State == observe.Broken:
		return no(end, "it is incomplete")
	}
	var why string
	if c.DeclaredNode, why, err = asDeclared(b, &c.has.Node); err != nil {
		return err
	}
	if why != "" {
		return no(end, "%s", why)
	}
	if why, _ := place.MoveObstacle(c.Site, c.Of); why != "" {
		return no(end, "%s", why)
	}
	for _, h := range []*observe.Host{from, b.hosts[c.to]} {
		if h.Engines != nil && !h.Engines[c.has.Engine].Move {
			return no(end, "the engine %s cannot move nodes", c.has.Engine)
		}
	}
	return place.CheckFit(b.site, c.Of, b.hosts[c.to])
}

// moveCompanions plans the move of companions, before the live nodes follow. If one of them fails, the live
// nodes have not been disturbed. Afterwards companions are stopped, as after a boot of their host.
func (m *movePlanner) moveCompanions(all []*companion) {
	left := map[string][]int{} // host -> the steps after which companions have left it
	for _, c := range all {
		why := fmt.Sprintf("release %s, in quarantine: ", site.ReleaseName(c.has.Release))
		halt := func(copied int) int {
			if !c.has.Runs() {
				return copied
			}
			return m.add(Step{
				Kind: StopNode, Host: c.from, Subject: c.node, Reason: why + "moves to host " + c.to,
				Undo: "start", Needs: []int{copied}, Old: &c.has.Node,
			})
		}
		c.came = m.planTransfer(&c.nodeMove, c.Node, why, m.up.layers.planLayers(m.hosts[c.to], c.Layers), halt)
		m.came[c.node] = append(m.came[c.node], c.came)
		left[c.from] = append(left[c.from], cleanUpMoved(m.planBuilder, c.from, c.to, &c.has.Node, c.came))
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		h := m.before[name]
		for i := range h.Networks {
			n := &h.Networks[i].Network
			on := func(node observe.Node) bool {
				return site.Quarantine(m.site.Key(), node.Release) == n.Site && isOn(&node.Node, n)
			}
			goes := func(c *companion) bool { return c.from == name && on(c.has) }
			stays := func(node observe.Node) bool {
				return node.Staged && on(node) &&
					!slices.ContainsFunc(all, func(c *companion) bool { return c.from == name && c.has.ID == node.ID })
			}
			if slices.ContainsFunc(all, goes) && !slices.ContainsFunc(h.Nodes, stays) {
				m.removeNetwork(h, n, "no node of this host uses it any more", left[name])
			}
		}
	}
}
