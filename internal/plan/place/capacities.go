package place

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/plan/vfs"
	"orrery/internal/site"
)

// A capacity is the free resources of a host. All amounts are integers, so that the result does not
// depend on the order in which nodes are added.
type capacity struct {
	host   *observe.Host
	cpus   amount // in millionths of a processor
	memory amount
	disk   int64           // bytes free, or negative if unknown
	alone  map[string]bool // interfaces, each for one node only, that are taken
	groups map[string]int  // group to be spread -> number of its nodes on the host
	shares map[string]int  // shared volume -> number of its nodes on the host
	pooled map[string]int  // network of virtual functions -> number of its nodes on the host

	boundless int // number of nodes on it without limits
}

// An amount is the total and the free amount of a resource.
type amount struct{ all, free int64 }

// freeShare returns the free share after some has been taken.
func (a amount) freeShare(taken int64) float64 {
	if a.all <= 0 {
		return 0
	}
	return float64(a.free-taken) / float64(a.all)
}

// unlimitedShare is the share of a host that a node without limits counts for when the next node is
// placed. Without it, all such nodes would go to the same host.
const unlimitedShare = 0.01

// freeShare returns the free share of the host's scarcest resource, after some has been taken.
func (h *capacity) freeShare(cpus, memory int64) float64 {
	return min(h.cpus.freeShare(cpus), h.memory.freeShare(memory)) - unlimitedShare*float64(h.boundless)
}

// capacities are the rooms of all hosts of a site.
type capacities struct {
	open   []*capacity // hosts that accept nodes, by name
	byName map[string]*capacity
	spread map[string][]string // node -> groups to be spread over hosts
	shared map[string][]string // node -> host-local volumes that it shares with others
	pools  map[string][]string // network of virtual functions -> its interfaces
	key    string              // of the site
}

func newCapacities(s *site.Site, hosts []observe.Host) *capacities {
	r := &capacities{byName: map[string]*capacity{}, spread: map[string][]string{}, shared: SharedVolumes(s),
		pools: vfs.Pools(s), key: s.Key()}
	for i := range hosts {
		r.add(s, &hosts[i])
	}
	slices.SortFunc(r.open, func(a, b *capacity) int { return strings.Compare(a.host.Name, b.host.Name) })
	for _, g := range s.Groups {
		if g.Spread != site.SpreadOverHosts {
			continue
		}
		for _, name := range g.Nodes {
			r.spread[name] = append(r.spread[name], g.Name)
		}
	}
	return r
}

func (r *capacities) add(s *site.Site, o *observe.Host) {
	to := &capacity{host: o, disk: -1, alone: map[string]bool{}, groups: map[string]int{}, shares: map[string]int{},
		pooled: map[string]int{}}
	r.byName[o.Name] = to
	if o.Unknown { // no node is placed there unless it is declared for the host
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

// assign puts a node on a host. If the node already exists on the host, its disk space is not counted
// again.
func (r *capacities) assign(n *site.Node, host string) { r.change(n, r.byName[host], 1) }

func (r *capacities) change(n *site.Node, h *capacity, by int) {
	h.cpus.free -= int64(by) * millionths(n.Limits.Cpus)
	h.memory.free -= int64(by) * n.Limits.Memory
	if isUnlimited(n) {
		h.boundless += by
	}
	for _, nic := range n.NICs {
		if isTied(nic) {
			h.alone[nic.Interface] = by > 0
		}
		if _, ok := r.pools[nic.Network]; ok {
			h.pooled[nic.Network] += by
		}
	}
	for _, g := range r.spread[n.Name] {
		h.groups[g] += by
	}
	for _, v := range r.shared[n.Name] {
		h.shares[v] += by
	}
	if _, ok := h.host.Node(n.Name); h.disk >= 0 && !ok {
		h.disk -= int64(by) * DiskBytes(n)
	}
}

func isUnlimited(n *site.Node) bool { return n.Limits.Cpus == 0 && n.Limits.Memory == 0 }

// DiskBytes returns how many bytes of a host's disk a node may need: the sizes of its disks that are
// files.
func DiskBytes(n *site.Node) (bytes int64) {
	for _, d := range n.VM.Drives() {
		if !d.IsDevice() {
			bytes += d.Size
		}
	}
	return bytes
}

// canRun reports whether a host can run a node. It must have the node's engine and the volumes that
// it shares with others, and the interfaces that the node takes must be free.
func (r *capacities) canRun(n *site.Node, h *capacity) bool {
	return h.host.Engines[n.Engine].Unable == (observe.Missing{}) && !r.separatesSharers(n, h) &&
		!slices.ContainsFunc(n.NICs, func(nic site.NIC) bool { return isTied(nic) && h.alone[nic.Interface] })
}

// lacksFunction reports whether a host has no virtual function left for a node.
func (r *capacities) lacksFunction(n *site.Node, h *capacity) bool {
	if len(r.pools) == 0 || h.host.Engines == nil { // or the host was not asked
		return false
	}
	return slices.ContainsFunc(n.NICs, func(nic site.NIC) bool {
		interfaces, ok := r.pools[nic.Network]
		return ok && h.pooled[nic.Network] >= vfs.Room(h.host.Cards, interfaces, r.key)
	})
}

// separatesSharers reports whether a host would separate a node from others with which it shares a volume.
func (r *capacities) separatesSharers(n *site.Node, h *capacity) bool {
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

// SharedVolumes returns, by node, the host-local volumes that it shares with other nodes of the site.
func SharedVolumes(s *site.Site) map[string][]string {
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

// hasRoomFor reports whether a host has room for a node. A node without limits fits anywhere.
func (h *capacity) hasRoomFor(n *site.Node) bool {
	disk := DiskBytes(n)
	return (n.Limits.Cpus == 0 || h.cpus.free >= millionths(n.Limits.Cpus)) &&
		(n.Limits.Memory == 0 || h.memory.free >= n.Limits.Memory) &&
		(disk == 0 || h.disk < 0 || h.disk >= disk)
}

// countInGroups returns the number of nodes of groups that are on a host.
func (h *capacity) countInGroups(spread []string) (all int) {
	for _, g := range spread {
		all += h.groups[g]
	}
	return all
}

// lastChoice is more than the number of nodes on any host.
const lastChoice = 1 << 30

// bestHost returns the host that should take a node. It chooses the host with the fewest nodes from
// which the node must be apart, and among such hosts the one with the most left of its scarcest
// resource. Most hosts are no better than the best so far, so best skips the costly checks for
// them: sites have thousands of nodes and hundreds of hosts.
func (r *capacities) bestHost(n *site.Node) (string, bool) {
	var best *capacity
	fewest, most := 0, 0.0
	cpus, spread := millionths(n.Limits.Cpus), r.spread[n.Name]
	for _, h := range r.open {
		company, free := h.countInGroups(spread), h.freeShare(cpus, n.Limits.Memory)
		if r.lacksFunction(n, h) { // the last choice; package vfs reports it with the numbers
			company += lastChoice
		}
		better := best == nil || company < fewest || company == fewest && free > most
		if better && r.canRun(n, h) && h.hasRoomFor(n) {
			best, fewest, most = h, company, free
		}
	}
	if best == nil {
		return "", false
	}
	return best.host.Name, true
}

// refusal returns why no host can take a node.
func (r *capacities) refusal(n *site.Node) (refusal, cure string) {
	var candidates []string
	for _, h := range r.open {
		if r.canRun(n, h) {
			candidates = append(candidates, h.host.Name)
		}
	}
	if len(candidates) == 0 {
		return fmt.Sprintf("no other host accepts nodes and has the engine %s, a free interface for it and its shared volumes",
			n.Engine), "orrery host check shows what hosts lack, orrery host ls which are drained"
	}
	return fmt.Sprintf("none of %s has %s free", strings.Join(candidates, ", "), describeNeeds(n)),
		"lower limits, or declare another [host.…]"
}

// describeNeeds describes the resources that a node needs.
func describeNeeds(n *site.Node) string {
	text := fmt.Sprintf("%.3g cpus and %d MiB", n.Limits.Cpus, n.Limits.Memory>>20)
	if disk := DiskBytes(n); disk > 0 {
		text = fmt.Sprintf("%.3g cpus, %d MiB of memory and %d MiB of disk", n.Limits.Cpus, n.Limits.Memory>>20, disk>>20)
	}
	return text
}

// A SpreadViolation is a group with more nodes on one host than on another that could take some of them.
type SpreadViolation struct {
	Group string `json:"group"`
	Host  string `json:"host"`
	Nodes int    `json:"nodes"`
	Least string `json:"least"` // host with the fewest
	Few   int    `json:"few"`
}

func (c SpreadViolation) String() string {
	return fmt.Sprintf("group %s is not spread evenly over hosts: %d nodes on %s and %d on %s", c.Group, c.Nodes,
		c.Host, c.Few, c.Least)
}

// spreadViolations returns the groups that must be spread over hosts but are not, by name.
func (r *capacities) spreadViolations() (all []SpreadViolation) {
	for _, g := range r.groups() {
		c := SpreadViolation{Group: g, Few: math.MaxInt}
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

// isTied reports whether an interface of a node is a certain one of its host. The name of a virtual
// function contains a PCI address; on another host, the node gets another one.
func isTied(nic site.NIC) bool { return nic.Interface != "" && !strings.Contains(nic.Interface, ":") }
