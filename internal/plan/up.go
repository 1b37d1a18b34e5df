package plan

import (
	"fmt"
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/selector"
	"orrery/internal/site/spec"
)

// Up plans what makes the hosts as declared: every node there, running, configured and healthy, and nothing that is no longer declared.
func Up(s *site.Site, hosts []observe.Host, goal Goal) (*Plan, error) {
	placed, err := Place(s, hosts)
	if err != nil {
		return nil, err
	}
	d := newDraft(placed, hosts, goal)
	byHost := map[string][]*site.Node{}
	for i := range placed.Nodes {
		n := &placed.Nodes[i]
		byHost[n.Host] = append(byHost[n.Host], n)
	}
	var waiting []waiting
	for i := range hosts {
		w, err := d.upHost(&hosts[i], byHost[hosts[i].Name])
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, w...)
	}
	if err := d.await(waiting); err != nil {
		return nil, err
	}
	return d.sorted(), nil
}

// waiting is a node whose configuration waits until other nodes are healthy.
type waiting struct {
	node *site.Node
	step int
}

func (d *draft) upHost(h *observe.Host, nodes []*site.Node) ([]waiting, error) {
	there := found(h)
	declared := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		declared[n.Name] = true
	}
	ready := d.prepare(h, len(nodes) > 0)
	d.removeUndeclared(h, declared)
	networks := d.networks(h, nodes, ready)
	if step, ok := d.names(h, nodes, there); ok {
		ready = append(ready, step)
	}
	var wait []waiting
	for _, n := range nodes {
		if !d.goal.concerns(n.Name) {
			continue
		}
		wanted, err := d.maker.Node(n)
		if err != nil {
			return nil, err
		}
		before := slices.Clone(ready)
		for _, nic := range wanted.NICs {
			if step, ok := networks[nic.Network]; ok {
				before = append(before, step)
			}
		}
		has := there[n.Name]
		if has != nil {
			if why := unfit(has, wanted); why != "" {
				before = append(before, d.removeNode(h, has, why))
				has = nil
			}
		}
		if step, ok := d.upNode(h, n, wanted, has, before); ok {
			wait = append(wait, waiting{n, step})
		}
	}
	return wait, nil
}

// prepare plans the kernel settings that a host needs to run nodes.
func (d *draft) prepare(h *observe.Host, needed bool) []int {
	if !needed {
		return nil
	}
	forward := slices.ContainsFunc(d.site.Networks, func(n site.Network) bool { return n.NAT })
	lacks := Lacking(h.Settings, forward)
	if len(lacks) == 0 {
		return nil
	}
	return []int{d.add(Step{
		Kind: PrepareHost, Host: h.Name, Subject: h.Name,
		Reason: spec.Differences(pick(h.Settings, lacks), lacks), Undo: "the former settings are put back by down",
	})}
}

func pick(all map[string]string, keys spec.Parts) spec.Parts {
	some := spec.Parts{}
	for key := range keys {
		some[key] = all[key]
	}
	return some
}

// removeUndeclared plans the end of nodes and networks that are there but no longer declared.
func (d *draft) removeUndeclared(h *observe.Host, declared map[string]bool) {
	if d.goal.Nodes != nil {
		return
	}
	var gone []int
	for i := range h.Nodes {
		if n := &h.Nodes[i]; !declared[n.Name] {
			gone = append(gone, d.removeNode(h, n, "no longer declared here"))
		}
	}
	for i := range h.Networks {
		if _, ok := d.site.Network(h.Networks[i].Name); !ok {
			d.removeNetwork(h, &h.Networks[i], "no longer declared", gone)
		}
	}
}

// networks plans the networks that the host's nodes are on, and gives the steps by network.
func (d *draft) networks(h *observe.Host, nodes []*site.Node, ready []int) map[string]int {
	steps := map[string]int{}
	used := map[string]bool{}
	for _, n := range nodes {
		for _, nic := range n.NICs {
			used[nic.Network] = true
		}
	}
	for _, wanted := range d.maker.Networks() {
		if !used[wanted.Name] {
			continue
		}
		reason := "new"
		if i := slices.IndexFunc(h.Networks, func(n spec.Network) bool { return n.Name == wanted.Name }); i >= 0 {
			if h.Networks[i] == wanted {
				continue
			}
			reason = networkDifference(h.Networks[i], wanted)
		}
		steps[wanted.Name] = d.add(Step{
			Kind: MakeNetwork, Host: h.Name, Subject: wanted.Name, Reason: reason, Needs: ready,
			Network: &wanted, Undo: "remove network " + wanted.Name,
		})
	}
	return steps
}

func networkDifference(was, is spec.Network) string {
	return spec.Differences(networkParts(was), networkParts(is))
}

func networkParts(n spec.Network) spec.Parts {
	return spec.Parts{
		"subnet": n.Subnet, "gateway": n.Gateway, "nat": fmt.Sprint(n.NAT), "mtu": fmt.Sprint(n.MTU), "bridge": n.Bridge,
	}
}

// names plans what nodes know of one another, where that has changed.
func (d *draft) names(h *observe.Host, nodes []*site.Node, there map[string]*observe.Node) (int, bool) {
	if len(nodes) == 0 {
		return 0, false
	}
	if h.Names == spec.Names(d.site) {
		return 0, false
	}
	reason := "names, addresses or roles changed"
	if h.Names == "" {
		reason = "new"
	}
	return d.add(Step{Kind: WriteNames, Host: h.Name, Subject: h.Name, Reason: reason, Undo: "written anew by the next up"}), true
}

// layer plans the layers that a node needs, each once a host, and gives the steps to wait for.
func (d *draft) layer(h *observe.Host, n *site.Node) []int {
	var needs []int
	base := d.maker.Base(n)
	if step, ok := d.build(h, base, nil); ok {
		needs = append(needs, step)
	}
	if role := d.maker.Layer(n); role != nil {
		if step, ok := d.build(h, role, needs); ok {
			return []int{step}
		}
	}
	return needs
}

func (d *draft) build(h *observe.Host, l *spec.Layer, needs []int) (int, bool) {
	if h.Layers[l.Digest] {
		return 0, false
	}
	key := h.Name + " " + l.Digest
	if step, ok := d.layers[key]; ok {
		return step, true
	}
	step := d.add(Step{
		Kind: BuildLayer, Host: h.Name, Subject: l.Title, Reason: "not in the store: " + l.Digest, Needs: slices.Clone(needs),
		Layer: l, Undo: "kept in the store",
	})
	d.layers[key] = step
	return step, true
}

// await lets the configuration of nodes come after the health of those that their roles need.
func (d *draft) await(all []waiting) error {
	matched := map[string][]*site.Node{}
	for _, w := range all {
		for _, role := range d.site.RolesOf(w.node) {
			for _, text := range role.NeedsHealthy {
				if _, ok := matched[text]; !ok {
					nodes, err := selector.Select(d.site, text)
					if err != nil {
						return err
					}
					matched[text] = nodes
				}
				for _, peer := range matched[text] {
					if step, ok := d.last[peer.Name]; ok && peer.Name != w.node.Name {
						d.Steps[w.step].Needs = append(d.Steps[w.step].Needs, step)
					}
				}
			}
		}
	}
	for _, w := range all {
		slices.Sort(d.Steps[w.step].Needs)
	}
	return nil
}

// sorted gives the plan in an order in which every step comes after those that it needs, otherwise as drafted.
func (d *draft) sorted() *Plan {
	place := make([]int, len(d.Steps))
	for i := range place {
		place[i] = -1
	}
	ordered := make([]*Step, 0, len(d.Steps))
	var visit func(n int)
	visit = func(n int) {
		if place[n] >= 0 {
			return
		}
		place[n] = len(d.Steps) // being visited: a cycle, which check refuses, is cut here
		for _, need := range d.Steps[n].Needs {
			visit(need)
		}
		place[n] = len(ordered)
		ordered = append(ordered, d.Steps[n])
	}
	for n := range d.Steps {
		visit(n)
	}
	for _, s := range ordered {
		for i, need := range s.Needs {
			s.Needs[i] = place[need]
		}
		slices.Sort(s.Needs)
	}
	for n, s := range ordered {
		s.N = n
	}
	d.Steps = ordered
	return &d.Plan
}

// Lacking gives the kernel settings, with the values they shall have, that a host must be given first.
func Lacking(settings map[string]string, forward bool) spec.Parts {
	lacks := spec.Parts{}
	for _, key := range slices.Sorted(maps.Keys(HostSettings)) {
		if key == forwarding && !forward {
			continue
		}
		if !enough(settings[key], HostSettings[key]) {
			lacks[key] = HostSettings[key]
		}
	}
	return lacks
}

// unknownHost says that a node is declared on a host that nobody looked at.
func unknownHost(n *site.Node) error {
	return problem.New(problem.Mistake, "node %s is on host %q, which was not observed", n.Name, n.Host)
}
