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
	d.names = spec.Names(placed)
	byHost, home := map[string][]*site.Node{}, map[string]string{}
	for i := range placed.Nodes {
		n := &placed.Nodes[i]
		home[n.Name] = n.Host
		if goal.concerns(n.Name) {
			byHost[n.Host] = append(byHost[n.Host], n)
		}
	}
	for i := range hosts { // on all hosts, before any node that moves is made anew on another
		d.removeStrays(&hosts[i], home)
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
	d.settle()
	return d.sorted(), nil
}

// waiting is a node whose configuration waits until other nodes are healthy.
type waiting struct {
	node *site.Node
	step int
}

// upHost plans one host, with those of its nodes that are concerned.
func (d *draft) upHost(h *observe.Host, nodes []*site.Node) ([]waiting, error) {
	there := found(h)
	ready := d.prepare(h, len(nodes) > 0)
	networks := d.networks(h, nodes, ready)
	if step, ok := d.writeNames(h, nodes); ok {
		ready = append(ready, step)
	}
	var wait []waiting
	for _, n := range nodes {
		wanted, err := d.maker.Node(n)
		if err != nil {
			return nil, err
		}
		u := &nodeDraft{draft: d, host: h, node: n, wanted: wanted, has: there[n.Name], before: slices.Clone(ready)}
		for _, nic := range wanted.NICs {
			if step, ok := networks[nic.Network]; ok {
				u.ground = append(u.ground, step)
			}
		}
		if u.has != nil {
			if why := unfit(u.has, wanted); why != "" {
				u.before = append(u.before, d.removeNode(h, u.has, why, ready...))
				u.has = nil
			}
		}
		if step, ok := u.upNode(); ok {
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
		Settings: lacks,
	})}
}

func pick(all map[string]string, keys spec.Parts) spec.Parts {
	some := spec.Parts{}
	for key := range keys {
		some[key] = all[key]
	}
	return some
}

// removeStrays plans the end of nodes that are on a host and belong on another or nowhere, and of networks that no
// node of the host is on. With a selection it leaves alone what that does not concern.
func (d *draft) removeStrays(h *observe.Host, home map[string]string) {
	all := d.goal.Nodes == nil
	ids := map[int]bool{}
	used := map[string]bool{}
	for i := range d.site.Nodes {
		n := &d.site.Nodes[i]
		if n.Host != h.Name {
			continue
		}
		ids[n.ID] = d.goal.concerns(n.Name)
		for _, nic := range n.NICs {
			used[nic.Network] = true
		}
	}
	for i := range h.Nodes {
		n := &h.Nodes[i]
		host, declared := home[n.Name]
		switch {
		case host == h.Name:
		case declared && d.goal.concerns(n.Name):
			d.removeNode(h, n, "moves to host "+host)
		case !declared && all:
			d.removeNode(h, n, "no longer declared")
		case !declared && ids[n.ID]:
			d.removeNode(h, n, "no longer declared, and its id is needed")
		}
	}
	for i := range h.Networks {
		n := &h.Networks[i]
		if !all || used[n.Name] {
			continue
		}
		why := "no longer declared"
		if _, declared := d.site.Network(n.Name); declared {
			why = "no node of this host is on it any more"
		}
		d.frees[claim{h.Name, "network " + n.Name}] = d.removeNetwork(h, n, why, nil)
	}
	if all && h.Names != "" && !slices.ContainsFunc(d.site.Nodes, func(n site.Node) bool { return n.Host == h.Name }) {
		d.forgetNames(h)
	}
}

// forgetNames plans the end of what nodes know of one another, after the end of all nodes of a host.
func (d *draft) forgetNames(h *observe.Host) {
	var gone []int
	for _, s := range d.Steps {
		if s.Host == h.Name && s.Kind == DestroyNode {
			gone = append(gone, s.N)
		}
	}
	d.add(Step{Kind: ForgetNames, Host: h.Name, Subject: h.Name, Reason: "no node is on this host any more", Needs: gone})
}

// networks plans the networks that nodes are on, and gives the steps by network.
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
		s := Step{
			Kind: MakeNetwork, Host: h.Name, Subject: wanted.Name, Reason: "new", Needs: ready,
			Network: &wanted, Undo: "remove network " + wanted.Name,
		}
		if i := slices.IndexFunc(h.Networks, func(n spec.Network) bool { return n.Name == wanted.Name }); i >= 0 {
			was := &h.Networks[i]
			if *was == wanted {
				continue
			}
			s.WasNetwork, s.Reason, s.Undo = was, networkDifference(*was, wanted), "make network "+wanted.Name+" as it was"
			s.Disturbs = cutOff(h, was, &wanted)
		}
		steps[wanted.Name] = d.add(s)
		d.frees[claim{h.Name, "network " + wanted.Name}] = steps[wanted.Name]
	}
	for _, step := range steps { // an address of the host can be on one network only
		for i := range h.Networks {
			if was := &h.Networks[i]; was.Name != d.Steps[step].Subject && overlap(was, d.Steps[step].Network) {
				d.claims(step, claim{h.Name, "network " + was.Name})
			}
		}
	}
	return steps
}

// cutOff gives the running nodes that do not reach their gateway for a while when a network changes.
func cutOff(h *observe.Host, was, is *spec.Network) []string {
	if was.Gateway == is.Gateway {
		return nil
	}
	var names []string
	for i := range h.Nodes {
		n := &h.Nodes[i]
		if n.State == observe.Running && slices.ContainsFunc(n.NICs, func(nic spec.NIC) bool { return nic.Network == was.Name }) {
			names = append(names, n.Name)
		}
	}
	return names
}

func networkDifference(was, is spec.Network) string {
	return spec.Differences(networkParts(was), networkParts(is))
}

func networkParts(n spec.Network) spec.Parts {
	return spec.Parts{
		"subnet": n.Subnet, "gateway": n.Gateway, "nat": fmt.Sprint(n.NAT), "mtu": fmt.Sprint(n.MTU), "bridge": n.Bridge,
	}
}

// writeNames plans what nodes know of one another, where that has changed.
func (d *draft) writeNames(h *observe.Host, nodes []*site.Node) (int, bool) {
	if len(nodes) == 0 || h.Names == d.names {
		return 0, false
	}
	reason, undo := "names, addresses or roles changed", "put the former names back"
	if h.Names == "" {
		reason, undo = "new", "forget them"
	}
	return d.add(Step{
		Kind: WriteNames, Host: h.Name, Subject: h.Name, Reason: reason, Undo: undo, Names: d.names, WasNames: h.Names,
	}), true
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
		Kind: BuildLayer, Host: h.Name, Subject: l.Title, Reason: "not in the store: " + l.Digest, Needs: needs,
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
		place[n] = len(d.Steps) // being visited
		for _, need := range d.Steps[n].Needs {
			visit(need)
		}
		place[n] = len(ordered)
		ordered = append(ordered, d.Steps[n])
	}
	for n := range d.Steps {
		visit(n)
	}
	for n, s := range ordered {
		s.N = n
		for i, need := range s.Needs {
			s.Needs[i] = place[need]
		}
		slices.Sort(s.Needs)
		s.Needs = slices.Compact(s.Needs)
		// A cycle, which check refuses, is cut here: nobody could begin it.
		s.Needs = slices.DeleteFunc(s.Needs, func(need int) bool { return need >= n })
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

// Build plans only the layers that nodes need and that their hosts do not have.
func Build(s *site.Site, hosts []observe.Host, goal Goal) (*Plan, error) {
	placed, err := Place(s, hosts)
	if err != nil {
		return nil, err
	}
	d := newDraft(placed, hosts, goal)
	for i := range placed.Nodes {
		if n := &placed.Nodes[i]; goal.concerns(n.Name) {
			d.layer(d.hosts[n.Host], n)
		}
	}
	return d.sorted(), nil
}
