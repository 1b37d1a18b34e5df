package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// A Move is the move of a node to another host, and why.
type Move struct {
	Node string `json:"node"`
	From string `json:"from"`
	To   string `json:"to"`
	Why  string `json:"why"`
}

// Moves are proposed moves, and the nodes that should move but cannot.
type Moves struct {
	Moves []Move          `json:"moves"`
	Stuck []Unschedulable `json:"stuck"`
}

// ProposeDrain returns where the nodes of a host go when it is drained. The site must be the one that is
// live.
func ProposeDrain(s *site.Site, hosts []observe.Host, from string) (Moves, error) {
	all := Moves{Moves: []Move{}, Stuck: []Unschedulable{}}
	i := slices.IndexFunc(hosts, func(h observe.Host) bool { return h.Name == from })
	if i < 0 || hosts[i].Unknown {
		return all, problem.New(problem.Unable, "the state of host %s is unknown: its moves cannot be computed",
			from).Try("check the host: orrery host check")
	}
	placed, err := Assign(s, hosts)
	if err != nil {
		return all, err
	}
	l := simulateLoss(s, placed, hosts, []int{i})
	for _, m := range l.Moved {
		if slices.ContainsFunc(hosts[i].Nodes, func(n observe.Node) bool { return n.Name == m.Node && !n.Staged }) {
			// otherwise the node does not exist yet
			all.Moves = append(all.Moves, Move{m.Node, from, m.Host, "host " + from + " is drained"})
		}
	}
	for _, n := range l.Lost {
		if _, ok := hosts[i].Node(n.Node); ok {
			n.Cure = strings.ReplaceAll(n.Cure, "it moves to a host with room", "drain again")
			all.Stuck = append(all.Stuck, n)
		}
	}
	for j := range hosts[i].Nodes {
		if n := &hosts[i].Nodes[j]; n.Staged &&
			!slices.ContainsFunc(all.Moves, func(m Move) bool { return m.Node == n.Name }) {
			all.Stuck = append(all.Stuck, Unschedulable{fmt.Sprintf("%s of release %d", n.Name, n.Release),
				"it is in quarantine and moves only together with the live node",
				fmt.Sprintf("switch to the release, or remove it: orrery release prune %d; stage it again afterwards",
					n.Release)})
		}
	}
	return all, nil
}

// maxImbalance is how much the load of two hosts may differ. A smaller difference is not worth stopping a
// node.
const maxImbalance = 0.1

// Rebalance proposes moves after which groups are spread over hosts again, and hosts are about
// equally full. It proposes few moves: those with the most effect come first, each node moves at
// most once, and nearly equal hosts are left alone. The result is the same for the same hosts, and
// after these moves Rebalance proposes none.
func Rebalance(s *site.Site, hosts []observe.Host) (Moves, error) {
	all := Moves{Moves: []Move{}, Stuck: []Unschedulable{}}
	if name := firstUnknown(hosts); name != "" {
		return all, problem.New(problem.Unable, "the state of host %s is unknown: its load cannot be computed", name).
			Try("check the host: orrery host check")
	}
	placed, err := Assign(s, hosts)
	if err != nil {
		return all, err
	}
	b := &balance{capacities: newCapacities(placed, hosts), on: map[*capacity][]*site.Node{}}
	for i := range placed.Nodes {
		n := &placed.Nodes[i]
		b.assign(n, n.Host)
		h := b.byName[n.Host]
		_, ok := h.host.Node(n.Name)
		if why, _ := tieReason(n, s.Nodes[i].Host != ""); why == "" && ok {
			b.on[h] = append(b.on[h], n)
		}
	}
	for _, nodes := range b.on {
		slices.SortFunc(nodes, func(x, y *site.Node) int { return compareSize(y, x) })
	}
	for b.improveSpread() || b.levelLoad() || b.evenOutUnlimited() {
		continue
	}
	all.Moves = append(all.Moves, b.moves...)
	return all, nil
}

// A balance is the hosts with their nodes while nodes are moved between them.
type balance struct {
	*capacities
	on    map[*capacity][]*site.Node // nodes that can move and have not moved yet, the smallest first
	moves []Move
}

// move moves a node and records why.
func (b *balance) move(n *site.Node, from, to *capacity, why string) {
	b.change(n, from, -1)
	b.change(n, to, 1)
	b.on[from] = slices.DeleteFunc(b.on[from], func(m *site.Node) bool { return m == n })
	b.moves = append(b.moves, Move{n.Name, from.host.Name, to.host.Name, why})
}

// canMove reports whether a node may move from one host to another.
func (b *balance) canMove(n *site.Node, from, to *capacity) bool {
	return from != to && b.canRun(n, to) && !b.lacksFunction(n, to) && to.hasRoomFor(n)
}

// improveSpread moves one node of a group that must be spread from a host with many of its nodes to one
// with few. It does not crowd another group by that. It reports whether it moved a node.
func (b *balance) improveSpread() bool {
	for _, g := range b.groups() {
		var found *site.Node
		var from, to *capacity
		gain := 1
		for _, a := range b.open {
			for _, n := range b.on[a] {
				if !slices.Contains(b.spread[n.Name], g) {
					continue
				}
				for _, c := range b.open {
					less := a.groups[g] - c.groups[g]
					if less > gain && b.canMove(n, a, c) && !b.worsensSpread(n, a, c) {
						found, from, to, gain = n, a, c, less
					}
				}
			}
		}
		if found != nil {
			b.move(found, from, to, fmt.Sprintf("group %s has %s on %s and %d on %s", g,
				humanize.Plural(from.groups[g], "node"), from.host.Name, to.groups[g], to.host.Name))
			return true
		}
	}
	return false
}

// groups returns the names of the groups that must be spread over hosts, sorted.
func (r *capacities) groups() (all []string) {
	for _, of := range r.spread {
		all = append(all, of...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// usedShare returns the used share of a host's scarcest resource, after the given change.
func (h *capacity) usedShare(cpus, memory int64) float64 {
	return 1 - min(h.cpus.freeShare(cpus), h.memory.freeShare(memory))
}

// levelLoad moves a node from the fullest host to another. It chooses the move after which the fuller
// of the two is the least full, and among equal moves the one to the emptiest host. It reports
// whether it moved a node.
func (b *balance) levelLoad() bool {
	fullest := slices.Clone(b.open)
	slices.SortStableFunc(fullest, func(x, y *capacity) int { return cmp.Compare(y.usedShare(0, 0), x.usedShare(0, 0)) })
	for _, a := range fullest {
		var found *site.Node
		var to *capacity
		full := a.usedShare(0, 0)
		best, least := full, 0.0
		for _, n := range b.on[a] {
			cpus, memory := millionths(n.Limits.Cpus), n.Limits.Memory
			for _, c := range b.open {
				if isUnlimited(n) || full-c.usedShare(0, 0) <= maxImbalance || !b.canMove(n, a, c) || b.worsensSpread(n, a, c) {
					continue
				}
				load := c.usedShare(cpus, memory)
				if then := max(a.usedShare(-cpus, -memory), load); then < best-1e-9 || found != nil && then < best+1e-9 &&
					load < least-1e-9 {
					found, to, best, least = n, c, min(then, best), load
				}
			}
		}
		if found != nil {
			cpus, memory := millionths(found.Limits.Cpus), found.Limits.Memory
			b.move(found, a, to, fmt.Sprintf("%s is used to %.0f %% and %s to %.0f %%; afterwards %.0f %% and %.0f %%",
				a.host.Name, 100*full, to.host.Name, 100*to.usedShare(0, 0),
				100*a.usedShare(-cpus, -memory), 100*to.usedShare(cpus, memory)))
			return true
		}
	}
	return false
}

// worsensSpread reports whether a move would worsen the spread of a group that must be spread.
func (b *balance) worsensSpread(n *site.Node, from, to *capacity) bool {
	return slices.ContainsFunc(b.spread[n.Name], func(g string) bool { return to.groups[g] >= from.groups[g] })
}

// evenOutUnlimited moves a node without limits from the host with the most of them to the host with the
// fewest, if that has less than three quarters as many. It reports whether it moved a node.
func (b *balance) evenOutUnlimited() bool {
	for _, a := range b.open {
		for _, c := range b.open {
			x, y := a.boundless, c.boundless
			if x < y+2 || 4*y > 3*x || slices.ContainsFunc(b.open,
				func(h *capacity) bool { return h.boundless > x || h.boundless < y }) {
				continue
			}
			i := slices.IndexFunc(b.on[a], func(n *site.Node) bool {
				return isUnlimited(n) && b.canMove(n, a, c) &&
					!b.worsensSpread(n, a, c)
			})
			if i >= 0 {
				b.move(b.on[a][i], a, c, fmt.Sprintf("%s has %s without limits and %s has %d", a.host.Name,
					humanize.Plural(x, "node"), c.host.Name, y))
				return true
			}
		}
	}
	return false
}
