package plan

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/plan/place"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/text/humanize"
)

// warnUncertain names the nodes that are left alone because it is unknown where they are.
func warnUncertain(b *planInput) []string {
	var hosts []string
	for name, h := range b.hosts {
		if h.Unknown {
			hosts = append(hosts, name)
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	slices.Sort(hosts)
	why := "not changed, because they may be on " + strings.Join(hosts, " or ") + ", whose state is unknown"
	return warning(why, 12, b.selectedNames(func(n *site.Node) bool { return !b.isLocated(n) }))
}

// warnPlacement names the nodes that are left alone because their hosts are drained, and the groups
// that must be spread over hosts but are not.
func warnPlacement(b *planInput, hosts []observe.Host) (all []string) {
	for i := range hosts {
		host := hosts[i].Name
		if !b.isDrained(host) {
			continue
		}
		nodes := b.selectedNames(func(n *site.Node) bool { return n.Host == host && b.isExcluded(n) })
		slices.Sort(nodes)
		why := "not changed, because their host " + host + " is drained (orrery host undrain " + host + ")"
		all = append(all, warning(why, 12, nodes)...)
	}
	if b.site.Stage != 0 {
		return all
	}
	for _, c := range place.SpreadViolations(b.site, hosts) {
		all = append(all, c.String()+" (run orrery rebalance)")
	}
	return all
}

// warnLargeMTU names the unselected nodes whose MTU is larger than what fits between hosts.
func warnLargeMTU(b *planInput, mtus map[string]int) []string {
	var names []string
	for _, h := range b.hosts {
		for i := range h.Nodes {
			n := &h.Nodes[i]
			if !b.goal.selects(n.Name) && slices.ContainsFunc(n.NICs, func(nic spec.NIC) bool {
				most, spans := mtus[nic.Network]
				return spans && nic.MTU > most
			}) {
				names = append(names, n.Name)
			}
		}
	}
	slices.Sort(names)
	return warning("on a network between hosts whose MTU is too large until up is run for them", 12, names)
}

// warnMTUChange names the nodes that stay when others move but whose networks change their MTU,
// because the network then spans other hosts or only one.
func warnMTUChange(b *planInput) []string {
	var names []string
	for i := range b.site.Nodes {
		n := &b.site.Nodes[i]
		current, ok := b.hosts[n.Host].Node(n.Name)
		if !ok || b.goal.selects(n.Name) {
			continue
		}
		wanted, err := b.makerOf(n).Node(n)
		if err == nil && slices.ContainsFunc(current.NICs, func(before spec.NIC) bool {
			return slices.ContainsFunc(wanted.NICs, func(after spec.NIC) bool {
				return after.Network == before.Network &&
					after.MTU != before.MTU
			})
		}) {
			names = append(names, n.Name)
		}
	}
	return warning("a network's MTU will change, and the next up restarts these nodes", 12,
		names)
}

// warnVMs names virtual machines of a host that run worse than the user may expect: emulated,
// or with more processors than the host has.
func warnVMs(h *observe.Host, nodes []*site.Node) (all []string) {
	var slow, large []string
	for _, n := range nodes {
		if h.Engines[n.Engine].Accel == observe.TCG {
			slow = append(slow, n.Name)
		}
		if n.Virtual() && h.Cpus > 0 && n.Limits.VCPUs() > h.Cpus {
			large = append(large, fmt.Sprintf("%s (%d)", n.Name, n.Limits.VCPUs()))
		}
	}
	if len(slow) > 0 {
		all = append(all, EmulationWarning(h.Name, slow))
	}
	why := fmt.Sprintf("virtual machines have more processors than host %s, which has %d", h.Name, h.Cpus)
	return append(all, warning(why, 8, large)...)
}

// warning returns why with at most `most` names, as the only warning, or nil if there are no names.
func warning(why string, most int, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return []string{why + ": " + humanize.List(names, most)}
}

// EmulationWarning returns a warning about virtual machines of a host whose processors are emulated.
func EmulationWarning(host string, nodes []string) string {
	return fmt.Sprintf("on host %s virtual machines run in software emulation, many times slower than containers: %s; `orrery doctor` shows why",
		host, humanize.List(nodes, 8))
}
