package inventory

import (
	"bytes"
	"fmt"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// HostNames returns the lines of hosts(5) by which the host of these nodes knows them: NODE.SITE, at
// the first address that the host reaches. A node that the host cannot reach has no line. Twins and
// releases in quarantine have none at all, because the addresses of their nodes are those of the live
// nodes.
func HostNames(s *site.Site, nodes ...*site.Node) []byte {
	var b bytes.Buffer
	if s.Twin != "" || s.Stage != 0 {
		return nil
	}
	for _, n := range nodes {
		nic := reachedNIC(s, n)
		if nic == nil {
			continue
		}
		fmt.Fprintf(&b, "%s %s.%s", nic.Address, n.Name, s.Name)
		for _, alias := range n.Aliases {
			fmt.Fprintf(&b, " %s.%s", alias, s.Name)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// HostNamesDigest returns a digest of the lines that HostNames returns.
func HostNamesDigest(lines []byte) string { return spec.Digest(string(lines)) }

// reachedNIC returns the first interface of a node on a network that its host can reach, or nil.
func reachedNIC(s *site.Site, n *site.Node) *site.NIC {
	for i := range n.NICs {
		if on, ok := s.Network(n.NICs[i].Network); ok && on.ReachedByHost() {
			return &n.NICs[i]
		}
	}
	return nil
}
