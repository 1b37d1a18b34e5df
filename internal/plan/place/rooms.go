package place

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/site"
)

// A room is what is free of a host. All is counted in whole numbers: so it does not matter in which
// order nodes come.
type room struct {
	host   *observe.Host
	cpus   amount // in millionths of a processor
	memory amount
	disk   int64           // bytes free; negative: nobody knows
	alone  map[string]bool // interfaces, each of which one node can have
	groups map[string]int  // how many nodes of groups that are spread are on it
	shares map[string]int  // how many of those that share a volume are on it, by volume

	boundless int // nodes on it without limits
}

// An amount is how much there is of something, and how much of that nobody has.
type amount struct{ all, free int64 }

// share returns how much of it is free after somebody has taken some.
func (a amount) share(taken int64) float64 {
	if a.all <= 0 {
		return 0
	}
	return float64(a.free-taken) / float64(a.all)
}

// boundlessShare is how much of a host a node without limits counts for when the next one is
// placed: such nodes shall not all come to the same host.
const boundlessShare = 0.01

// free returns the share of the host that is free, of what is scarcest, once somebody has taken some.
func (h *room) free(cpus, memory int64) float64 {
	return min(h.cpus.share(cpus), h.memory.share(memory)) - boundlessShare*float64(h.boundless)
}

// rooms are the hosts of a site.
type rooms struct {
	open   []*room // of the hosts to which nodes may come, by name
	byName map[string]*room
	spread map[string][]string // groups that are spread over hosts, by node
	shared map[string][]string // volumes of one host that it shares with others, by node
}

func newRooms(s *site.Site, hosts []observe.Host) *rooms {
	r := &rooms{byName: map[string]*room{}, spread: map[string][]string{}, shared: Sharers(s)}
	for i := range hosts {
		r.add(s, &hosts[i])
	}
	slices.SortFunc(r.open, func(a, b *room) int { return strings.Compare(a.host.Name, b.host.Name) })
	for _, g := range s.Groups {
		if g.Spread != site.OverHosts {
			continue
		}
		for _, name := range g.Nodes {
			r.spread[name] = append(r.spread[name], g.Name)
		}
	}
	return r
}

func (r *rooms) add(s *site.Site, o *observe.Host) {
	to := &room{host: o, disk: -1, alone: map[string]bool{}, groups: map[string]int{}, shares: map[string]int{}}
	r.byName[o.Name] = to
	if o.Unknown { // nobody goes there who does not say so
		return
	}
	cpus, memory := float64(o.Cpus), o.Memory
	if h, ok := s.Host(o.Name); ok {
		cpus, memory = cmp.Or(h.Cpus, cpus)*cmp.Or(h.Oversubscribe, 1), cmp.Or(h.Memory, memory)
	}
	to.cpus, to.memory = amount{millionths(cpus), millionths(cpus)}, amount{memory, memory}
	if o.Disk != nil {
		to.disk = o.Disk.Free
	}
	if o.Drained == nil {
		r.open = append(r.open, to)
	}
}

func millionths(cpus float64) int64 { return int64(math.Round(cpus * 1e6)) }

// take puts a node on a host. What it has on the disk of the host it is on is not free any more.
func (r *rooms) take(n *site.Node, host string) { r.change(n, r.byName[host], 1) }

func (r *rooms) change(n *site.Node, h *room, by int) {
	h.cpus.free -= int64(by) * millionths(n.Limits.Cpus)
	h.memory.free -= int64(by) * n.Limits.Memory
	if boundless(n) {
		h.boundless += by
	}
	for _, nic := range n.NICs {
		if nic.Interface != "" {
			h.alone[nic.Interface] = by > 0
		}
	}
	for _, g := range r.spread[n.Name] {
		h.groups[g] += by
	}
	for _, v := range r.shared[n.Name] {
		h.shares[v] += by
	}
	if _, ok := h.host.Node(n.Name); h.disk >= 0 && !ok {
		h.disk -= int64(by) * Disk(n)
	}
}

func boundless(n *site.Node) bool { return n.Limits.Cpus == 0 && n.Limits.Memory == 0 }

// Disk returns how much of a host's disk a node may come to need by what it says: its own disks that are files.
func Disk(n *site.Node) (bytes int64) {
	for _, d := range n.VM.Drives() {
		if !d.IsDevice() {
			bytes += d.Size
		}
	}
	return bytes
}

// able reports whether a host has the engine of a node and what it shares with others, and the
// interfaces that it takes are nobody's.
func (r *rooms) able(n *site.Node, h *room) bool {
	return h.host.Engines[n.Engine].Unable == (observe.Lack{}) && !r.parted(n, h) &&
		!slices.ContainsFunc(n.NICs, func(nic site.NIC) bool { return nic.Interface != "" && h.alone[nic.Interface] })
}

// parted reports whether a node would be parted on a host from others with which it shares a volume.
func (r *rooms) parted(n *site.Node, h *room) bool {
	return slices.ContainsFunc(r.shared[n.Name], func(v string) bool {
		if h.shares[v] > 0 {
			return false
		}
		for _, other := range r.byName {
			if other.shares[v] > 0 {
				return true
			}
		}
		return false
	})
}

// Sharers returns, by node, the volumes of one host that it shares with others of the site.
func Sharers(s *site.Site) map[string][]string {
	local := map[string]bool{}
	for i := range s.Volumes {
		if v := &s.Volumes[i]; v.Shared && !v.From().Everywhere {
			local[v.Name] = true
		}
	}
	all := map[string][]string{}
	if len(local) == 0 {
		return all
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for _, role := range s.RolesOf(n) {
			for _, use := range role.Volumes {
				if local[use.Name] && !slices.Contains(all[n.Name], use.Name) {
					all[n.Name] = append(all[n.Name], use.Name)
				}
			}
		}
	}
	return all
}

// holds reports whether a host has room for a node. A node without limits fits anywhere.
func (h *room) holds(n *site.Node) bool {
	disk := Disk(n)
	return (n.Limits.Cpus == 0 || h.cpus.free >= millionths(n.Limits.Cpus)) &&
		(n.Limits.Memory == 0 || h.memory.free >= n.Limits.Memory) &&
		(disk == 0 || h.disk < 0 || h.disk >= disk)
}

// company is how many nodes of groups a host has.
func (h *room) company(spread []string) (all int) {
	for _, g := range spread {
		all += h.groups[g]
	}
	return all
}

// best returns, of the hosts that take a node, the one with the fewest of those nodes from which it must be
// apart. Of several such hosts it returns the one with the most left of what is scarcest there. Most hosts
// are no better than the best so far, and are not asked whether they take the node: sites have thousands of
// nodes and hundreds of hosts.
func (r *rooms) best(n *site.Node) (string, bool) {
	var best *room
	fewest, most := 0, 0.0
	cpus, spread := millionths(n.Limits.Cpus), r.spread[n.Name]
	for _, h := range r.open {
		company, free := h.company(spread), h.free(cpus, n.Limits.Memory)
		better := best == nil || company < fewest || company == fewest && free > most
		if better && r.able(n, h) && h.holds(n) {
			best, fewest, most = h, company, free
		}
	}
	if best == nil {
		return "", false
	}
	return best.host.Name, true
}

// why tells why no host takes a node.
func (r *rooms) why(n *site.Node) (why, cure string) {
	var candidates []string
	for _, h := range r.open {
		if r.able(n, h) {
			candidates = append(candidates, h.host.Name)
		}
	}
	if len(candidates) == 0 {
		return fmt.Sprintf("no other host takes nodes, and has the engine %s, an interface that it could take and what it shares with others",
			n.Engine), "orrery host check tells what hosts lack, orrery host ls which are drained"
	}
	return fmt.Sprintf("none of %s has %s free", strings.Join(candidates, ", "), needs(n)),
		"lower limits, or declare another [host.…]"
}

// needs says how much room a node needs.
func needs(n *site.Node) string {
	text := fmt.Sprintf("%.3g cpus and %d MiB", n.Limits.Cpus, n.Limits.Memory>>20)
	if disk := Disk(n); disk > 0 {
		text = fmt.Sprintf("%.3g cpus, %d MiB of memory and %d MiB of disk", n.Limits.Cpus, n.Limits.Memory>>20, disk>>20)
	}
	return text
}

// A Crowd is nodes of a group that are on one host more than on some other that could have some of them.
type Crowd struct {
	Group string `json:"group"`
	Host  string `json:"host"`
	Nodes int    `json:"nodes"`
	Least string `json:"least"` // the host with the fewest
	Few   int    `json:"few"`
}

func (c Crowd) String() string {
	return fmt.Sprintf("group %s is to be spread over hosts, and has %d nodes on %s and %d on %s", c.Group, c.Nodes,
		c.Host, c.Few, c.Least)
}

// crowded returns the groups that are to be spread over hosts and are not, by name.
func (r *rooms) crowded() (all []Crowd) {
	for _, g := range r.groups() {
		c := Crowd{Group: g, Few: math.MaxInt}
		for _, h := range r.open {
			n := h.groups[g]
			if n > c.Nodes {
				c.Host, c.Nodes = h.host.Name, n
			}
			if n < c.Few {
				c.Least, c.Few = h.host.Name, n
			}
		}
		if c.Nodes > c.Few+1 {
			all = append(all, c)
		}
	}
	return all
}
