package place

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// A Loss is that of some hosts at once, and what comes of it.
type Loss struct {
	Hosts []string   `json:"hosts"`
	Moved []Refuge   `json:"moved"` // nodes that find room elsewhere
	Lost  []Homeless `json:"lost"`  // nodes that do not
}

// A Refuge is the host on which a node finds room.
type Refuge struct {
	Node string `json:"node"`
	Host string `json:"host"`
}

// A Homeless node finds no room, and why.
type Homeless struct {
	Node string `json:"node"`
	Why  string `json:"why"`
	Cure string `json:"cure"`
}

// Survive tells, for each way of losing so many hosts at once, which nodes of theirs find room on the others, placed as Place would: by processors, memory, engines and what they take of a host.
// The site is as it is live. A host of which nothing is known proves nothing, so there must be none.
func Survive(s *site.Site, hosts []observe.Host, lost int) ([]Loss, error) {
	if len(hosts) < 2 {
		return nil, problem.New(problem.Usage, "the site has one host; nothing is left when that is lost").Try(`declare others: [host.sv2] address = "ops@10.8.1.2"`)
	}
	if lost < 1 || lost >= len(hosts) {
		return nil, problem.New(problem.Usage, "of %d hosts, %d cannot be lost", len(hosts), lost).Try("name a number from 1 to %d", len(hosts)-1)
	}
	without := choices(len(hosts), lost)
	if without == nil {
		return nil, problem.New(problem.Usage, "there are more than %d ways to lose %d of %d hosts", mostChoices, lost, len(hosts)).Try("prove a smaller number")
	}
	if i := slices.IndexFunc(hosts, func(h observe.Host) bool { return h.Unknown }); i >= 0 {
		return nil, problem.New(problem.Unable, "nothing is known of host %s, so nothing can be proven", hosts[i].Name).Try("see that it answers: orrery host check")
	}
	placed, err := Place(s, hosts)
	if err != nil {
		return nil, err
	}
	fixed := map[string]bool{}
	for i := range s.Nodes {
		fixed[s.Nodes[i].Name] = s.Nodes[i].Host != ""
	}
	var all []Loss
	for _, choice := range without {
		all = append(all, lose(placed, hosts, choice, fixed))
	}
	return all, nil
}

// lose places the nodes of some hosts on the others, in the order in which Place does.
func lose(s *site.Site, hosts []observe.Host, without []int, fixed map[string]bool) Loss {
	l := Loss{Moved: []Refuge{}, Lost: []Homeless{}}
	var left []observe.Host
	for i := range hosts {
		if slices.Contains(without, i) {
			l.Hosts = append(l.Hosts, hosts[i].Name)
		} else {
			left = append(left, hosts[i])
		}
	}
	room := newRooms(s, left)
	taken := map[string][]string{} // interfaces of hosts, each of which one node can have
	settle := func(n *site.Node) {
		room.take(n)
		for _, nic := range n.NICs {
			if nic.Interface != "" {
				taken[n.Host] = append(taken[n.Host], nic.Interface)
			}
		}
	}
	var homeless []site.Node
	for i := range s.Nodes {
		if n := &s.Nodes[i]; slices.Contains(l.Hosts, n.Host) {
			homeless = append(homeless, *n)
		} else {
			settle(n)
		}
	}
	for i := range homeless {
		n := &homeless[i]
		if why, cure := tied(n, fixed[n.Name]); why != "" {
			l.Lost = append(l.Lost, Homeless{n.Name, why, cure})
			continue
		}
		var able []string
		for k := range left {
			h := &left[k]
			if h.Engines[n.Engine].Unable == (observe.Lack{}) && !slices.ContainsFunc(n.NICs, func(nic site.NIC) bool { return nic.Interface != "" && slices.Contains(taken[h.Name], nic.Interface) }) {
				able = append(able, h.Name)
			}
		}
		host, ok := room.bestOf(able, n)
		if !ok {
			l.Lost = append(l.Lost, unplaced(n, able))
			continue
		}
		n.Host = host
		settle(n)
		l.Moved = append(l.Moved, Refuge{n.Name, host})
	}
	return l
}

// tied tells what ties a node to its host.
func tied(n *site.Node, fixed bool) (why, cure string) {
	switch {
	case fixed:
		return "it is on that host alone", fmt.Sprintf("take host = %q out, and it goes where there is room", n.Host)
	case len(n.VM.PCI) > 0:
		return "it has PCI functions of that host: " + strings.Join(n.VM.PCI, ", "), "have a node on another host that does the same"
	}
	if n.VM.Disk != "" && strings.HasPrefix(n.VM.Disk, "/") || slices.ContainsFunc(n.VM.Disks, func(d site.Drive) bool { return d.IsDevice() }) {
		return "its disk is a device of that host", "give it a disk that is a file: \"qcow2\" or \"raw\""
	}
	return "", ""
}

// unplaced tells why none of the other hosts takes a node.
func unplaced(n *site.Node, able []string) Homeless {
	if len(able) == 0 {
		return Homeless{n.Name, fmt.Sprintf("no other host has the engine %s and an interface that it could take", n.Engine), "orrery host check tells what hosts lack"}
	}
	return Homeless{n.Name, fmt.Sprintf("none of %s has %.3g cpus and %d MiB free then", strings.Join(able, ", "), n.Limits.Cpus, n.Limits.Memory>>20), "lower limits, or declare another [host.…]"}
}

const mostChoices = 5000

// choices gives each way of taking k of n things, in order; nil: there are too many.
func choices(n, k int) (all [][]int) {
	var take func(from int, have []int) bool
	take = func(from int, have []int) bool {
		if len(have) == k {
			all = append(all, slices.Clone(have))
			return len(all) <= mostChoices
		}
		for i := from; i < n; i++ {
			if !take(i+1, append(have, i)) {
				return false
			}
		}
		return true
	}
	if !take(0, nil) {
		return nil
	}
	return all
}
