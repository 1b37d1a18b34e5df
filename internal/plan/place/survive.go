package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// A HostLoss is the simultaneous loss of some hosts, and its effects.
type HostLoss struct {
	Hosts   []string          `json:"hosts"`
	Moved   []Relocation      `json:"moved"`   // nodes that find room on other hosts
	Lost    []Unschedulable   `json:"lost"`    // nodes that do not
	Crowded []SpreadViolation `json:"crowded"` // groups that must be spread over hosts and no longer are
}

// A Relocation is the host on which a node finds room.
type Relocation struct {
	Node string `json:"node"`
	Host string `json:"host"`
}

// A Unschedulable node finds no room. Why and Cure explain it.
type Unschedulable struct {
	Node string `json:"node"`
	Why  string `json:"why"`
	Cure string `json:"cure"`
}

// IsHarmless reports whether the whole site is as declared after the loss.
func (l *HostLoss) IsHarmless() bool { return len(l.Lost) == 0 && len(l.Crowded) == 0 }

// SimulateLoss returns, for each way of losing a number of hosts at once, which nodes find room on the
// other hosts. It places them as Assign would: by processors, memory, disk, engines, the host
// interfaces that they take, and the nodes from which they must be apart. The site must be the one
// that is live. An unknown host proves nothing, so SimulateLoss returns an error if there is one.
func SimulateLoss(s *site.Site, hosts []observe.Host, lost int) ([]HostLoss, error) {
	if len(hosts) < 2 {
		return nil, problem.New(problem.Usage, "the site has only one host").
			Try(`declare another: [host.sv2] address = "ops@10.8.1.2"`)
	}
	if lost < 1 || lost >= len(hosts) {
		return nil, problem.New(problem.Usage, "the site has %d hosts and cannot lose %d", len(hosts), lost).
			Try("use a number from 1 to %d", len(hosts)-1)
	}
	without := combinations(len(hosts), lost)
	if without == nil {
		return nil, problem.New(problem.Usage, "more than %d ways to lose %d of %d hosts", maxCombinations, lost,
			len(hosts)).Try("use a smaller number")
	}
	if name := firstUnknown(hosts); name != "" {
		return nil, problem.New(problem.Unable, "the state of host %s is unknown: nothing can be proven", name).
			Try("check the host: orrery host check")
	}
	placed, err := Assign(s, hosts)
	if err != nil {
		return nil, err
	}
	var all []HostLoss
	for _, choice := range without {
		all = append(all, simulateLoss(s, placed, hosts, choice))
	}
	return all, nil
}

// simulateLoss places the nodes of lost hosts on the other hosts, the largest first, so that more of them
// find room.
func simulateLoss(s, placed *site.Site, hosts []observe.Host, without []int) HostLoss {
	l := HostLoss{Moved: []Relocation{}, Lost: []Unschedulable{}, Crowded: []SpreadViolation{}}
	var left []observe.Host
	for i := range hosts {
		if slices.Contains(without, i) {
			l.Hosts = append(l.Hosts, hosts[i].Name)
		} else {
			left = append(left, hosts[i])
		}
	}
	room := newCapacities(placed, left)
	var homeless []*site.Node
	fixed := map[string]bool{}
	for i := range placed.Nodes {
		n := &placed.Nodes[i]
		if slices.Contains(l.Hosts, n.Host) && n.PerHost != "" {
			continue // it is of no use without its host
		}
		if slices.Contains(l.Hosts, n.Host) {
			homeless = append(homeless, n)
			fixed[n.Name] = s.Nodes[i].Host != ""
		} else {
			room.assign(n, n.Host)
		}
	}
	slices.SortStableFunc(homeless, compareSize)
	for _, n := range homeless {
		if why, cure := tieReason(n, fixed[n.Name]); why != "" {
			l.Lost = append(l.Lost, Unschedulable{n.Name, why, cure})
			continue
		}
		host, ok := room.bestHost(n)
		if !ok {
			why, cure := room.refusal(n)
			l.Lost = append(l.Lost, Unschedulable{n.Name, why + " then", cure})
			continue
		}
		room.assign(n, host)
		l.Moved = append(l.Moved, Relocation{n.Name, host})
	}
	l.Crowded = append(l.Crowded, room.spreadViolations()...)
	return l
}

// compareSize compares nodes so that those that need more of a host come first.
func compareSize(a, b *site.Node) int {
	return cmp.Or(cmp.Compare(b.Limits.Memory, a.Limits.Memory), cmp.Compare(b.Limits.Cpus, a.Limits.Cpus),
		cmp.Compare(a.ID, b.ID), strings.Compare(a.Name, b.Name))
}

// tieReason returns what ties a node to its host, or "" if nothing does.
func tieReason(n *site.Node, fixed bool) (why, cure string) {
	switch {
	case fixed:
		return "it is tied to that host", fmt.Sprintf("remove host = %q, and it moves to a host with room", n.Host)
	case len(n.VM.PCI) > 0:
		return "it has PCI functions of that host: " + strings.Join(n.VM.PCI, ", "),
			"declare a node on another host for the same purpose"
	case len(n.Devices) > 0:
		return "it has devices of that host: " + n.Devices[0].Path,
			"declare a node on another host for the same purpose"
	}
	if n.VM.Disk != "" && strings.HasPrefix(n.VM.Disk, "/") ||
		slices.ContainsFunc(n.VM.Disks, func(d site.Drive) bool { return d.IsDevice() }) {
		return "its disk is a device of that host", "use a file as its disk: \"qcow2\" or \"raw\""
	}
	return "", ""
}

const maxCombinations = 5000

// combinations returns each way of taking k of n items, in order, or nil if there are too many.
func combinations(n, k int) (all [][]int) {
	var take func(from int, have []int) bool
	take = func(from int, have []int) bool {
		if len(have) == k {
			all = append(all, slices.Clone(have))
			return len(all) <= maxCombinations
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
