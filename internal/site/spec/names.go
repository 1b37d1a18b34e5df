package spec

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"orrery/internal/site"
)

// HostsFile returns the hosts(5) file for nodes that are on exactly these networks. It lists every node
// of the site as NAME and NAME.SITE, and as NAME.NETWORK.SITE on each of its networks. The address
// of NAME is the one on the first shared network, or the node's primary address if they share none.
// Services are listed as NAME and NAME.SITE.
func HostsFile(s *site.Site, networks []string) []byte {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
	for i := range s.Nodes {
		n := &s.Nodes[i]
		primary := primaryNIC(n, networks)
		for j, nic := range n.NICs {
			fmt.Fprintf(&b, "%s ", nic.Address)
			if j == primary {
				fmt.Fprintf(&b, "%s.%s %s ", n.Name, s.Name, n.Name)
				for _, alias := range n.Aliases {
					fmt.Fprintf(&b, "%s.%s %s ", alias, s.Name, alias)
				}
			}
			fmt.Fprintf(&b, "%s.%s.%s\n", n.Name, nic.Network, s.Name)
		}
	}
	for _, v := range s.Services {
		fmt.Fprintf(&b, "%s %s.%s %s\n", v.Address, v.Name, s.Name, v.Name)
	}
	return []byte(b.String())
}

func primaryNIC(n *site.Node, networks []string) int {
	for j, nic := range n.NICs {
		if slices.Contains(networks, nic.Network) {
			return j
		}
	}
	return 0
}

// NamesDigest returns a digest of everything that nodes know of one another: names, addresses, roles,
// groups and free values.
func NamesDigest(s *site.Site) string {
	type entry struct {
		Name   string
		ID     int
		NICs   []site.NIC
		Roles  []string
		Groups []string
		Host   string
		Vars   map[string]any

		Release            int      `json:",omitempty"`
		Aliases, StandsFor []string `json:",omitempty"`
	}
	all := make([]entry, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		all[i] = entry{n.Name, n.ID, n.NICs, n.Roles, n.Groups, n.Host, s.VarsOf(n), n.Release, n.Aliases, n.StandsFor}
	}
	if len(s.Services) == 0 {
		return Digest([]any{s.Name, s.Vars, all})
	}
	type service struct {
		Name    string
		Address netip.Addr
	}
	var services []service
	for _, v := range s.Services {
		services = append(services, service{v.Name, v.Address})
	}
	return Digest([]any{s.Name, s.Vars, all, services})
}

// EnvFile returns the [env] of all roles of a node as an environment file (systemd.exec(5)). A later
// role overrides an earlier one.
func EnvFile(roles []*site.Role) []byte {
	all := map[string]string{}
	for _, r := range roles {
		maps.Copy(all, r.Env)
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(all[key])
		fmt.Fprintf(&b, "%s=\"%s\"\n", key, value)
	}
	return []byte(b.String())
}
