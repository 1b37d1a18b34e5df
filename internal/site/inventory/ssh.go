package inventory

import (
	"bytes"
	"fmt"
	"strings"

	"orrery/internal/site"
)

// SSHConfig gives an ssh_config(5) with which ssh reaches every node by its name and trusts exactly the keys in a
// known_hosts file, where they stand as NAME.SITE. Nodes of another host are reached by way of it.
func SSHConfig(s *site.Site, knownHosts string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Site %s, by orrery ssh-config\n", s.Name)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		full := n.Name + "." + s.Name
		if len(n.NICs) == 0 {
			fmt.Fprintf(&b, "\n# %s is on no network: orrery shell %s\n", n.Name, n.Name)
			continue
		}
		fmt.Fprintf(&b, "\nHost %s %s\n", n.Name, full)
		fmt.Fprintf(&b, "    HostName %s\n", n.NICs[0].Address)
		fmt.Fprintf(&b, "    User root\n")
		fmt.Fprintf(&b, "    HostKeyAlias %s\n", full)
		fmt.Fprintf(&b, "    UserKnownHostsFile %s\n", quote(knownHosts))
		fmt.Fprintf(&b, "    StrictHostKeyChecking yes\n")
		if jump := jump(s, n.Host); jump != "" {
			fmt.Fprintf(&b, "    ProxyJump %s\n", jump)
		}
	}
	return b.Bytes()
}

// jump gives the address of a host that has to be gone through to reach its nodes.
func jump(s *site.Site, host string) string {
	if h, ok := s.Host(host); ok && !h.Local() {
		return h.Address
	}
	return ""
}

// quote also doubles "%", which ssh would expand.
func quote(path string) string {
	path = strings.ReplaceAll(path, "%", "%%")
	if strings.ContainsAny(path, " \t") {
		return `"` + path + `"`
	}
	return path
}
